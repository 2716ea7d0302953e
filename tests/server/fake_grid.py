"""Simulated Grid and clock for tests of the Grid wrapper."""

from collections.abc import Iterable

import numpy as np
from flwr.app import ArrayRecord, Error, Message, Metadata, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from server.exchange.grid import Exchange, PollingGrid, RoundLimits

LIMITS = RoundLimits(min_replies=2, deadline=60.0, patience=1.0)


class Clock:
    """Clock that advances by sleeping only."""

    def __init__(self) -> None:
        self.now = 100.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.naps += [seconds] if seconds else []
        self.now += seconds


class FakeGrid(Grid):
    """Grid that answers message i after `delays[i]` seconds, with an error if i is in `broken`, twice if `twice`."""

    def __init__(self, clock: Clock, delays: list[float], broken: Iterable[int] = (), twice: bool = False) -> None:
        self.clock, self.delays, self.broken, self.twice = clock, delays, set(broken), twice
        self.pushed: list[Message] = []
        self.pulled: list[set[str]] = []
        self.start = 0.0

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        self.start = self.clock()
        for i, message in enumerate(messages):
            message.metadata.__dict__["_message_id"] = f"m{i}"
            self.pushed.append(message)
        return ["" if message.metadata.dst_node_id < 0 else message.metadata.message_id for message in self.pushed]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        ids = set(message_ids)
        self.pulled.append(ids)
        elapsed = self.clock() - self.start
        ready = [i for i in sorted(range(len(self.delays)), key=self.delays.__getitem__) if self.delays[i] <= elapsed]
        if not self.twice:
            ready = [i for i in ready if f"m{i}" in ids]
        return [self.reply(i) for i in ready]

    def reply(self, i: int) -> Message:
        if i in self.broken:  # as in Flower, such a reply names the SuperLink as its source
            return Message(Error(1000, f"reason {i}"), reply_to=self.pushed[i])
        return Message(content(i), reply_to=self.pushed[i])

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        raise AssertionError("the wrapper has its own polling")

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return instruction(dst_node_id)

    def get_node_ids(self) -> Iterable[int]:
        return [10, 11]

    run = property(lambda self: Run.create_empty(run_id=1))

    def set_run(self, run: Run) -> None:
        raise NotImplementedError


def content(value: float) -> RecordDict:
    """Return one array of 8 float32."""
    return RecordDict({"arrays": ArrayRecord([np.full(8, value, np.float32)])})


def instruction(node: int, kind: str = "train") -> Message:
    metadata = Metadata(1, "", 1, node, "", "round 1", 0.0, 1e9, kind)
    return Message(metadata=metadata, content=content(0))  # type: ignore[call-overload,no-any-return]


def exchange(
    delays: list[float],
    limits: RoundLimits = LIMITS,
    broken: Iterable[int] = (),
    twice: bool = False,
    timeout: float | None = None,
) -> tuple[Exchange, FakeGrid, Clock]:
    clock = Clock()
    grid = FakeGrid(clock, delays, broken, twice)
    polling = PollingGrid(grid, limits, clock=clock, sleep=clock.sleep)
    messages = (instruction(10 + i) for i in range(len(delays)))  # a generator, which can be iterated once only
    return polling.exchange(messages, timeout=timeout), grid, clock
