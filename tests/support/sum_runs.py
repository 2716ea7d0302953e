"""Whole runs with helpers in one process, whose parts a test stops, restarts or corrupts."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from flwr.app import Context, Message, RecordDict

from client.data.dataset import Dataset
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.secure.helper.app import answer, help_too
from client.secure.helper.helper_service import HelperService
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.options import Scalar
from common.secure.terms import SumTerms
from common.tasks.vocabulary import Vocabulary
from deploy.simulation.grid import InProcessGrid
from server.record.events import Sum
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from tests.support.helpers import node_keys
from tests.support.toys import configured, toy_homes

POLICY = Policy(min_sum=2, allow_counts="summed", helpers_on_first_use=True, share_metrics="always")

MIN_SUM = 3

CONTEXT = Context(1, 1, {}, RecordDict(), {})
"""Context of nodes whose app does not read it."""


def summed(method: str = "fedavg", trust: str = "helpers", **options: Scalar) -> RunConfig:
    """Return a configuration of three rounds under that trust."""
    quick = {"rounds": 3, "secure-sums__min-sum": MIN_SUM, "secure-sums__deadline": 0.1, "federation__wait": 1.0}
    return configured(method, **{"privacy__trust": trust, **quick, **options})


def noised(epsilon: float = 50.0, **options: Scalar) -> RunConfig:
    """Return a configuration with noise on sums."""
    return summed(**{"privacy__unit": "client", "privacy__epsilon": epsilon, **options})


class SumGrid(InProcessGrid):
    """Grid with hooks: `before` sees each request on its way, `after` each answer, and None loses it."""

    before: Callable[[Message], None] = staticmethod(lambda message: None)
    after: Callable[[Message], Message | None] = staticmethod(lambda message: message)

    also: Mapping[int, HelperService] = MappingProxyType({})
    """Clients that help, too."""

    def _answer(self, messages: Sequence[Message]) -> list[Message]:
        return [
            help_too(self.also[node], self._respond)(message, CONTEXT)
            if (node := message.metadata.dst_node_id) in self.also
            else super(SumGrid, self)._answer([message])[0]
            for message in messages
        ]

    def _respond(self, message: Message, context: Context) -> Message:
        return super()._answer([message])[0]

    def forget(self, node: int) -> None:
        """Disconnect a helper."""
        del self._helpers[node]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        messages = list(messages)
        for message in messages:
            self.before(message)
        return super().push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [kept for message in super().pull_messages(message_ids) if (kept := self.after(message)) is not None]


class SumFederation:
    """Clients and helpers with seeded noise, for any number of server processes one after another.

    Args:
        folder: Folder of runs.
        clients: Number of clients.
        helpers: Number of helpers.
        policy: Policy of every client.
        also: Number of clients that help, too, besides the helpers.
    """

    def __init__(
        self, folder: Path, clients: int = 4, helpers: int = 2, policy: Policy = POLICY, also: int = 0
    ) -> None:
        self.runs = folder
        self.sessions = {k + 1: _session(f"client-{k}", k, policy) for k in range(clients)}
        self.desks = [_desk(k) for k in range(helpers)]
        self.also = {k + 1: _desk(helpers + k, name=f"client-{k}-helper", serves="also") for k in range(also)}
        self.grid = self.connect()

    def connect(self) -> SumGrid:
        """Return a new connection to all clients and helpers, as a restarted server has it."""
        self.grid = SumGrid(self.sessions, 1, helpers=[partial(answer, desk) for desk in self.desks])
        self.grid.also = self.also
        return self.grid

    def run(self, config: RunConfig, *, resume: bool = False) -> Result:
        return run(self.grid, config.model_copy(update={"resume": resume}), self.runs)

    def restart_helper(self, number: int) -> None:
        """Start a helper again: its keys are lost."""
        node = len(self.sessions) + 1 + number
        self.desks[number] = _desk(number)
        self.grid._helpers[node] = partial(answer, self.desks[number])

    def sums(self, channel: str = "train") -> list[Sum]:
        events = RunDirectory(self.runs, "toy").events()
        return [event for event in events if isinstance(event, Sum) and event.channel == channel]

    def spent(self, config: RunConfig) -> list[float]:
        """Return what each client has spent."""
        return [s.releaser.budget.ledger(config.privacy).spent() for s in self.sessions.values()]


def losing(kind: str, nodes: Sequence[int], times: int = 1) -> Callable[[Message], Message | None]:
    """Return a hook that loses the first answers of these nodes to messages of a kind."""
    left = dict.fromkeys(nodes, times)

    def lose(message: Message) -> Message | None:
        node = message.metadata.src_node_id
        if message.metadata.message_type != kind or not left.get(node):
            return message
        left[node] -= 1
        return None

    return lose


def _session(name: str, number: int, policy: Policy) -> Session:
    home = toy_homes(number + 1)[number]

    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, Dataset((home,), vocabulary))

    return Session(name, learner, MemoryStore(), in_memory(policy, partial(_generator, number, itertools.count())))


def _generator(number: int, releases: Iterator[int]) -> np.random.Generator:
    return np.random.default_rng([number, next(releases)])


def _desk(number: int, *, name: str = "", serves: Literal["only", "also"] = "only") -> HelperService:
    def noise_key(terms: SumTerms) -> bytes:
        return hashlib.sha256(f"{number}|{terms.round}".encode()).digest()

    key = node_keys(number + 1)[number]
    return HelperService(name or f"helper-{number}", key, serves=serves, noise_key=noise_key)
