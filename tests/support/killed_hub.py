"""Hub with ledgers on disk that is killed before statements of its ledgers: `python -m tests.support.killed_hub FOLDER KILLS`.

Four clients have data of their own, and two have halves of one table, so they share a ledger. The hub answers one round after
another. In each it is killed once, then it is started again and answers the same request first.
"""

import json
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import numpy as np
from flwr.app import RecordDict

from client.app import open_session
from client.data.read import read_partition
from client.hub.hub import Hub
from client.privacy.ledger import database
from client.privacy.ledger.ledger import DiskReplayCache
from client.privacy.ledger.roll_back import RollbackRecord
from client.settings import ClientSettings
from client.tasks.rules.data.homes import write_homes
from common.arrays import sha256
from common.config.parse import to_json
from common.models import parameters
from common.privacy.mechanisms import fresh_generator
from common.wire.codec import decode, encode
from common.wire.hubs import split_answers
from common.wire.messages import ENROL, TRAIN, EnrolReply, EnrolRequest, TrainReply, TrainRequest
from tests.support.asked import configured
from tests.support.build import task_model
from tests.support.toys import CATALOGUE, instruction, toy_dataset

COST, CONFIG = 0.001, configured()
CLIENTS = {
    **{f"own-{k}": (f"own-{k}.csv", "") for k in range(4)},
    **{f"half-{k}": ("both.csv", f"{k}/2") for k in (0, 1)},
}
"""Client -> its table, and its part of it."""

DRAWN, SENT, STEPS = "drawn", "sent", "steps"
"""Files: a line for each noise that was drawn and for each reply that was sent, and the steps of the last round by kind."""


class Steps:
    """Steps of the ledgers: all statements of SQLite, and the writes of roll-back records and cached replies.

    Before the step `last`, of a kind and the number of its occurrence, the process is killed.
    """

    def __init__(self) -> None:
        self.last: tuple[str, int] | None = None
        self.done, self._lock, connect = Counter[str](), threading.Lock(), database._connect

        def traced(*arguments: Any, **options: Any) -> Connection:
            db = connect(*arguments, **options)
            db.set_trace_callback(lambda statement: self.step(re.sub(r"[\d'].*", "", statement, flags=re.DOTALL)))
            return db

        database._connect = traced
        for owner, name in ((RollbackRecord, "write"), (DiskReplayCache, "put")):
            setattr(owner, name, self._wrap(f"{owner.__name__}.{name}", getattr(owner, name)))

    def step(self, kind: str) -> None:
        with self._lock:
            self.done[kind] += 1
            if (kind, self.done[kind]) == self.last:
                os.kill(os.getpid(), signal.SIGKILL)

    def start(self, last: tuple[str, int] | None) -> None:
        """Count anew."""
        self.done, self.last = Counter(), last

    def _wrap(self, kind: str, write: Callable[..., None]) -> Callable[..., None]:
        def stepped(*arguments: Any) -> None:
            self.step(f"before {kind}")
            write(*arguments)
            self.step(f"after {kind}")

        return stepped


def main(folder: Path, kills: int) -> None:
    """Answer a round, then as many more with a kill in each, before each kind of step in turn."""
    parameters(task_model(CONFIG, CATALOGUE))  # imports what each copy needs
    for seed, table in enumerate(sorted({table for table, _ in CLIENTS.values()})):
        write_homes(folder / table, toy_dataset(3, seed))
        read_partition(CONFIG.task, str(folder / table), (0, 1))
    in_child(partial(serve, folder, [1]))
    steps = dict(json.loads((folder / STEPS).read_text()))
    for k, (kind, times) in zip(range(kills), cycle(steps.items()), strict=False):
        last = kind, min(1 + 2 * (k // len(steps)) + k % 2, times)
        if in_child(partial(serve, folder, [k + 1, k + 2], last)) != signal.SIGKILL:
            sys.exit(f"round {k + 2} ended before {last}")
    in_child(partial(serve, folder, [kills + 1]))


def in_child(work: Callable[[], None]) -> int:
    """Do the work in a copy of this process; return the number of the signal that ended it, or 0."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("the hub has failed")
    return os.WTERMSIG(status)


def serve(folder: Path, rounds: Sequence[int], last: tuple[str, int] | None = None) -> None:
    """Start the hub and answer the requests of rounds; in the last one, be killed before that step."""
    steps, hub = Steps(), Hub({name: open_session(settings(folder, name)) for name in CLIENTS}, together=4)
    invitation = EnrolRequest("toy", to_json(CONFIG), CATALOGUE.to_json())
    [enrolment] = {decode(EnrolReply, reply).enrolment for reply in ask(hub, encode(invitation), ENROL).values()}
    for number in rounds:
        request = TrainRequest(number, enrolment, parameters(task_model(CONFIG, CATALOGUE)), cost=COST)
        for name, session in hub.sessions.items():
            session.releaser.generator = partial(draw, folder, name, number)
        steps.start(last if number == rounds[-1] else None)
        for name, reply in ask(hub, encode(request), TRAIN).items():
            write_line(folder / SENT, name, number, sha256(decode(TrainReply, reply).update))
    (folder / STEPS).write_text(json.dumps(steps.done))


def ask(hub: Hub, content: RecordDict, kind: str) -> dict[str, RecordDict]:
    """Return the reply of each client; a refusal is an error here."""
    answers = split_answers(hub.respond(instruction(8, content, kind)).content)
    assert all(isinstance(answer, RecordDict) for answer in answers.values()), answers
    return {name: answer for name, answer in answers.items() if isinstance(answer, RecordDict)}


def settings(folder: Path, name: str) -> ClientSettings:
    table, part = CLIENTS[name]
    return ClientSettings(data=str(folder / table), shard=part, name=name, hub="a", state_dir=folder / "state")


def draw(folder: Path, name: str, number: int) -> np.random.Generator:
    write_line(folder / DRAWN, name, number)
    return fresh_generator()


def write_line(path: Path, *words: object) -> None:
    """Append a line at once, so that a kill cannot tear it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{' '.join(map(str, words))}\n".encode())
    os.close(handle)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
