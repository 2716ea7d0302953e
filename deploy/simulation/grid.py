"""Federation inside one process: deterministic, without sockets or Ray, for thousands of clients."""

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Self

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from client.data.dataset import AnyDataset
from client.data.read import partition
from client.node.flower import failure_reply
from client.session import Session
from client.tasks.registry import CLIENT_TASKS
from client.training.participant import choose_cohort, split_cohort
from common.config.run import RunConfig
from common.contribution import Lengths
from common.errors import FedloomError
from common.wire.codec import decode
from common.wire.messages import ASSIGN, ENROL, TRAIN, TrainRequest
from deploy.simulation.blocks import Engine, Population
from deploy.simulation.clients import Job, answer_all, decode_once, open_sessions, train_cohort
from deploy.simulation.helpers import Helper, make_helpers
from server.exchange.flower import Run, identify_process
from server.record.result import Result
from server.run import run

RARELY = 50_000, 20, 100
"""Thresholds of the garbage collector in a simulation; a round leaves few objects in cycles."""

SimulationEngine = Engine
"""Place of the shards that train a large population."""

RELEASES = (ASSIGN, TRAIN)
"""Types of messages whose answers may hold noised values."""


def simulate(
    config: RunConfig,
    whole: AnyDataset,
    runs: Path,
    *,
    clients: int = 0,
    together: int = 0,
    noise_seed: int | None = None,
    workers: int = 1,
) -> Result:
    """Train with one client per unit of a data set, or with `clients` clients.

    The other arguments are those of `simulate_clients`.
    """
    data = partition(whole, clients, unit=CLIENT_TASKS[config.task].unit)
    return simulate_clients(config, data, runs, together=together, noise_seed=noise_seed, workers=workers)


def simulate_clients(
    config: RunConfig,
    data: Sequence[AnyDataset],
    runs: Path,
    *,
    together: int = 0,
    noise_seed: int | None = None,
    workers: int = 1,
) -> Result:
    """Train with one client per partition.

    Args:
        config: Configuration of the run.
        data: Each client's data, all read under the run's vocabulary.
        runs: Folder of run folders.
        together: Number of clients that train stacked; 0: one at a time for up to 16 clients, else `TOGETHER`.
        noise_seed: Root seed of reproducible DP noise, for studies; it gives no protection. None samples fresh noise.
        workers: Number of processes in which a large population trains; the result does not depend on it.
    """
    sessions, _ = open_sessions(data, noise_seed)
    with InProcessGrid(sessions, together, helpers=make_helpers(config, noise_seed), workers=workers) as grid:
        return run(grid, config, runs)


class InProcessGrid(Grid):
    """Grid whose clients are objects; a message is answered when it is pushed.

    In a `with` block, Python's garbage collector passes over clients that have enrolled, and works rarely. Otherwise a
    collection visits every object of every client in each round.

    Args:
        sessions: Clients by node id.
        together: Number of clients that train stacked; 0 chooses.
        on_released: Callback after clients have released values, before the server has their replies.
        helpers: Helpers of secure sums; their nodes follow those of the clients.
        lengths: Typical lengths of the last round, where replies are summed in blocks.
        workers: Number of processes in which a large population trains.
        folder: Folder of files that hold a large population's state; None for main memory.
        engine: Place of the shards that train a large population; None for copies of this process.
    """

    def __init__(
        self,
        sessions: Mapping[int, Session],
        together: int,
        on_released: Callable[[], None] = lambda: None,
        helpers: Sequence[Helper] = (),
        lengths: Lengths | None = None,
        workers: int = 1,
        folder: Path | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._sessions, self._together = sessions, together or choose_cohort(len(sessions))
        self._on_released = on_released
        reference = {} if lengths is None else lengths
        self.population = Population(sessions, together, reference, workers, folder, engine)
        self._helpers = dict(enumerate(helpers, start=max(sessions, default=0) + 1))
        self._replies: dict[str, Message] = {}
        self._ids = count(1)
        self._thresholds: tuple[int, int, int] | None = None
        identify_process()

    def __enter__(self) -> Self:
        self._thresholds = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*RARELY)
        return self

    def __exit__(self, *exception: object) -> None:
        self.population.end()
        if self._thresholds:
            gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages; clients train in cohorts."""
        messages = list(messages)
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(next(self._ids))
        training = [message for message in messages if message.metadata.message_type == TRAIN]
        others = [message for message in messages if message.metadata.message_type != TRAIN]
        for reply in (*self._answer(others), *(self._train(training) if training else ())):
            self._replies[reply.metadata.reply_to_message_id] = reply
        if any(message.metadata.message_type in RELEASES for message in messages):
            self._on_released()
        if self._thresholds and any(message.metadata.message_type == ENROL for message in messages):
            gc.freeze()
        return [message.metadata.message_id for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies."""
        return [self._replies.pop(identity) for identity in list(message_ids) if identity in self._replies]

    def get_node_ids(self) -> list[int]:
        """Return all clients and helpers; they are always connected."""
        return [*self._sessions, *self._helpers]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Push, then pull."""
        return self.pull_messages(self.push_messages(messages))

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """Create a message, as in Flower's Grid."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    @property
    def run(self) -> Run:
        """Flower run; a simulation has none."""
        raise FedloomError("an in-process federation has no Flower run")

    def set_run(self, run: Run) -> None:
        """Ignore the Flower run."""

    def _session(self, message: Message) -> Session:
        return self._sessions[message.metadata.dst_node_id]

    def _answer(self, messages: Sequence[Message]) -> list[Message]:
        if self.population.evaluates(messages):
            return self.population.evaluate(messages)
        if messages:
            self.population.recall()
        helpers = [message for message in messages if message.metadata.dst_node_id in self._helpers]
        clients = [message for message in messages if message.metadata.dst_node_id not in self._helpers]
        return [
            *(self._helpers[message.metadata.dst_node_id](message) for message in helpers),
            *answer_all(self._sessions, clients, self._together),
        ]

    def _train(self, messages: Sequence[Message]) -> list[Message]:
        """Train in cohorts of clients with data of similar size, which need little padding."""
        if self._together > 1 and self.population.trains(messages):
            return self.population.train(messages)
        self.population.recall()
        request = decode_once(lambda message: decode(TrainRequest, message.content))
        replies, jobs = [], []
        for message in messages:
            try:
                jobs.append(Job(message, self._session(message), self._session(message).participant(request(message))))
            except FedloomError as error:
                replies.append(failure_reply(message, error))
        jobs.sort(key=lambda job: job.participant.learner.size)
        for cohort in split_cohort(jobs, lambda job: job.participant.learner, self._together):
            replies += train_cohort(cohort)
        return replies
