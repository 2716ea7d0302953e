"""A federation inside one process: no sockets, no Ray, deterministic; thousands of clients on a laptop.

`InProcessGrid` is the Grid that the same server code talks to. Clients of a round train stacked in cohorts (see
`client.training.cohort`), and with `together=1` one at a time: bit for bit what they compute as processes of their own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from client.app import answer, decode_request, failure_reply
from client.data.dataset import AnyDataset
from client.data.read import partition
from client.policy import Policy
from client.privacy.in_memory import in_memory
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.training.cohort import train
from client.training.participant import Participant
from common.config.run import RunConfig
from common.errors import FedloomError
from common.privacy.randomness import fresh_generator
from common.tasks.vocabulary import Vocabulary
from common.wire.codec import decode, encode
from common.wire.messages import TRAIN, Payload, TrainReply, TrainRequest
from server.events import Result
from server.run import run

TOGETHER = 32
"""Clients that train stacked, alike in size; larger cohorts pad more and outgrow the processor's cache."""


SIMULATED = Policy(allow_counts=True, allow_shared_sample=True, share_metrics="always")
"""Whoever simulates a federation holds all of its data."""


def simulate(
    config: RunConfig,
    whole: AnyDataset,
    runs: Path,
    *,
    clients: int = 0,
    together: int = 0,
    noise_seed: int | None = None,
) -> Result:
    """`simulate_clients` with one client per home or visitor of a data set, in their order, or dealt to `clients` clients."""
    return simulate_clients(
        config,
        partition(whole, clients, unit=CLIENT_TASKS[config.task].unit),
        runs,
        together=together,
        noise_seed=noise_seed,
    )


def simulate_clients(
    config: RunConfig, parts: Sequence[AnyDataset], runs: Path, *, together: int = 0, noise_seed: int | None = None
) -> Result:
    """Train with one client per part.

    Args:
        config: The run.
        parts: Each client's data, all read under the run's catalogue.
        runs: Folder of run folders.
        together: Clients that train stacked; 0 chooses: one at a time for up to 16 clients, else `TOGETHER`.
        noise_seed: Root of privacy noise that can be drawn again, which protects nobody: for studies. None draws fresh noise.
    """
    alike: dict[bytes, bytes] = {}
    sessions = {node: _session(node, part, noise_seed, alike) for node, part in enumerate(parts, start=1)}
    stacked = together or (1 if len(sessions) <= 16 else TOGETHER)
    return run(InProcessGrid(sessions, stacked), config, runs)


class _SimulatedStore(MemoryStore):
    """State of a client that nobody asks once the run is over: it keeps no finished model, and what all are told alike once.

    Args:
        alike: Documents by their content, of all clients together.
    """

    def __init__(self, alike: dict[bytes, bytes]) -> None:
        super().__init__()
        self._alike = alike

    def write(self, run: str, name: str, content: bytes) -> None:
        """See `Shop`."""
        if name != MODEL:
            super().write(run, name, self._alike.setdefault(content, content))


def _session(node: int, part: AnyDataset, noise_seed: int | None, alike: dict[bytes, bytes]) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, part)

    draws = count()
    seeded = partial(_seeded, noise_seed, node, draws) if noise_seed is not None else fresh_generator
    return Session(f"client-{node - 1}", learner, _SimulatedStore(alike), in_memory(SIMULATED, seeded))


def _seeded(noise_seed: int, node: int, draws: Iterator[int]) -> np.random.Generator:
    return np.random.default_rng([noise_seed, node, next(draws)])


class InProcessGrid(Grid):
    """Clients as objects; a message is answered when it is pushed.

    Args:
        sessions: Clients by node id.
        together: How many train stacked.
    """

    def __init__(self, sessions: Mapping[int, Session], together: int) -> None:
        self._sessions, self._together = sessions, together
        self._replies: dict[str, Message] = {}
        self._ids = count(1)
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages; requests to train are worked on in cohorts."""
        messages = list(messages)
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(next(self._ids))
        training = [message for message in messages if message.metadata.message_type == TRAIN]
        others = [message for message in messages if message.metadata.message_type != TRAIN]
        self._keep(self._answered(others))
        self._keep(self._train(training) if training else [])
        return [m.metadata.message_id for m in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Hand out the replies."""
        return [self._replies.pop(identity) for identity in list(message_ids) if identity in self._replies]

    def get_node_ids(self) -> list[int]:
        """All clients; nobody is ever away."""
        return list(self._sessions)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Push, then pull."""
        return self.pull_messages(self.push_messages(messages))

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """See Flower's Grid."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    @property
    def run(self) -> Run:
        """There is no Flower run behind a simulation."""
        raise FedloomError("an in-process federation has no Flower run")

    def set_run(self, run: Run) -> None:
        """Nothing to set."""

    def _answered(self, messages: list[Message]) -> list[Message]:
        known: dict[int, Payload] = {}

        def request(message: Message) -> Payload:
            """Read once: clients share what the server encoded."""
            if id(message.content) not in known:
                known[id(message.content)] = decode_request(message)
            return known[id(message.content)]

        return [answer(self._sessions[m.metadata.dst_node_id], m, partial(request, m)) for m in messages]

    def _train(self, messages: list[Message]) -> list[Message]:
        """Train in cohorts of clients of like size, so that little of what is stacked is padding."""
        contents = {
            id(message.content): message.content for message in messages
        }  # clients share what the server encoded
        decoded = {key: decode(TrainRequest, content) for key, content in contents.items()}
        requests = [decoded[id(message.content)] for message in messages]
        sessions = [self._sessions[m.metadata.dst_node_id] for m in messages]
        members: dict[int, Participant] = {}
        replies = []
        for k, (session, request) in enumerate(zip(sessions, requests, strict=True)):
            try:
                members[k] = session.participant(request)
            except FedloomError as error:
                replies.append(failure_reply(messages[k], error))
        by_size = sorted(members, key=lambda k: members[k].learner.size)
        for first in range(0, len(by_size), self._together):
            cohort = by_size[first : first + self._together]
            algorithm = sessions[cohort[0]].config(requests[cohort[0]].enrolment).method_options
            outcomes = train(algorithm, [members[k] for k in cohort])
            for k, outcome in zip(cohort, outcomes, strict=True):
                replies.append(_answer(sessions[k], messages[k], members[k], outcome))
        return replies

    def _keep(self, replies: Iterable[Message]) -> None:
        self._replies |= {reply.metadata.reply_to_message_id: reply for reply in replies}


def _answer(
    session: Session, message: Message, participant: Participant, outcome: TrainReply | FedloomError
) -> Message:
    def work() -> TrainReply:
        if isinstance(outcome, FedloomError):
            raise outcome
        return outcome

    try:
        return Message(encode(session.release(participant, work)), reply_to=message)
    except FedloomError as error:
        return failure_reply(message, error)
