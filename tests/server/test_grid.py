"""The Grid wrapper: when it stops waiting, in which order it answers, and what it reports."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ArrayRecord, Error, Message, Metadata, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from server.grid import LOST, Exchange, PollingGrid, RoundLimits, _is_lost

NEVER = 1e9
LIMITS = RoundLimits(min_replies=2, deadline=60.0, patience=1.0)


class Clock:
    """Seconds that pass only when somebody sleeps."""

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
    """Answers message i after `delays[i]` seconds: an error where it is in `broken`, and twice in a row if `twice`."""

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
        if i in self.broken:  # as Flower's own: such a reply names the SuperLink as its source
            return Message(Error(1000, f"reason {i}"), reply_to=self.pushed[i])
        return Message(content(i), reply_to=self.pushed[i])

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        raise AssertionError("the wrapper polls by itself")

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
    """One array of 8 float32."""
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
    messages = (instruction(10 + i) for i in range(len(delays)))  # a generator: it can be walked once only
    return polling.exchange(messages, timeout=timeout), grid, clock


def test_waits_for_all_and_answers_in_the_order_asked() -> None:
    result, _, _ = exchange([0.3, 0.1, 0.2])
    assert [reply.metadata.src_node_id for reply in result.replies] == [10, 11, 12]
    assert (result.asked, result.missing, result.failed) == ((10, 11, 12), (), {})
    assert result.seconds == pytest.approx(0.3, abs=0.05)


def test_pauses_grow_while_nothing_arrives_and_start_again_when_something_does() -> None:
    _, _, clock = exchange([5.0, 10.0], replace(LIMITS, patience=2))
    assert clock.naps[0] == pytest.approx(0.0028)
    assert max(clock.naps) == pytest.approx(0.1)
    resets = [i for i in range(1, len(clock.naps)) if clock.naps[i] == pytest.approx(0.002)]
    assert len(resets) == 1, "one pause is short again: after the first of two replies"


def test_pulls_only_what_is_missing() -> None:
    _, grid, _ = exchange([0.0, 0.5])
    assert grid.pulled[0] == {"m0", "m1"}
    assert all(ids == {"m1"} for ids in grid.pulled[1:])


def test_a_pulled_plug_costs_patience_not_the_deadline() -> None:
    result, _, _ = exchange([2.0, 3.0, NEVER])
    assert result.missing == (12,)
    assert result.seconds == pytest.approx(3.0 * (1 + 1.0) + 1.0, abs=0.25)  # quorum of 2 after 3 s


def test_a_slow_client_gets_its_time() -> None:
    result, _, _ = exchange([2.0, 3.0, 5.5])
    assert result.missing == ()
    assert len(result.replies) == 3


def test_below_the_quorum_the_deadline_decides() -> None:
    result, _, _ = exchange([1.0, NEVER, NEVER])
    assert result.missing == (11, 12)
    assert result.seconds == pytest.approx(60.0)


def test_a_timeout_shortens_the_deadline_and_never_lengthens_it() -> None:
    assert exchange([NEVER], timeout=5.0)[0].seconds == pytest.approx(5.0)
    assert exchange([NEVER], timeout=500.0)[0].seconds == pytest.approx(60.0)


def test_errors_are_answers_but_no_quorum() -> None:
    result, _, _ = exchange([0.0, 0.0, NEVER], replace(LIMITS, deadline=20.0), broken=[0])
    assert result.failed == {10: "reason 0"}
    assert result.seconds == pytest.approx(20.0), "one usable reply of the two needed: waits for the third"


def test_all_errors_end_the_wait_at_once() -> None:
    result, _, clock = exchange([0.0, 0.0], broken=[0, 1])
    assert result.failed == {10: "reason 0", 11: "reason 1"}
    assert len(result.replies) == 2
    assert clock.naps == []


def test_a_reply_delivered_twice_counts_once() -> None:
    result, _, _ = exchange([0.0, 0.2, 0.4], twice=True)
    assert [reply.metadata.src_node_id for reply in result.replies] == [10, 11, 12]


def test_a_message_that_could_not_be_sent_is_missing_and_not_waited_for() -> None:
    clock = Clock()
    polling = PollingGrid(FakeGrid(clock, [0.0, 0.0]), LIMITS, clock=clock, sleep=clock.sleep)
    result = polling.exchange([instruction(10), instruction(-1)])
    assert result.missing == (-1,)
    assert clock.naps == []


def test_bytes_are_those_of_the_content() -> None:
    one = content(0).array_records["arrays"].count_bytes()
    assert one > 8 * 4
    result, _, _ = exchange([0.0, 0.0, 0.0], broken=[1])
    assert (result.bytes_down, result.bytes_up) == (3 * one, 2 * one)


def test_send_and_receive_returns_the_replies_and_tells_the_callback() -> None:
    clock, seen = Clock(), list[Exchange]()
    polling = PollingGrid(FakeGrid(clock, [0.1, 0.0]), LIMITS, seen.append, clock, clock.sleep)
    replies = polling.send_and_receive([instruction(10), instruction(11)])
    assert [tuple(replies)] == [e.replies for e in seen]
    assert len(replies) == 2


def test_the_rest_is_the_wrapped_grid() -> None:
    polling = PollingGrid(FakeGrid(Clock(), []), LIMITS)
    assert list(polling.get_node_ids()) == [10, 11]
    assert [node.node_id for node in polling.get_nodes()] == [10, 11]
    assert polling.create_message(content(0), "train", 7, "g").metadata.dst_node_id == 7


def test_limits_that_make_no_sense() -> None:
    for limits in ((0, 1.0, 0.0), (1, 0.0, 0.0), (1, 1.0, -1.0)):
        with pytest.raises(ValueError, match="min_replies"):
            RoundLimits(*limits)


def test_a_node_that_the_superlink_gave_up_is_missing() -> None:
    """Its own error codes say that nobody will answer; they are pinned here."""
    from flwr.common.constant import ErrorCode

    assert LOST == (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
    assert _is_lost(Message(Error(5, "Node Unavailable"), reply_to=instruction(1)))
    assert not _is_lost(Message(Error(1000, "refused"), reply_to=instruction(1)))


def test_the_first_poll_comes_after_most_of_the_shortest_recent_wait() -> None:
    clock = Clock()
    grid = FakeGrid(clock, [1.0, 1.0])
    polling = PollingGrid(grid, LIMITS, clock=clock, sleep=clock.sleep)
    for delay in (*[1.0] * 4, 3.0, 0.1):  # what was slow once must not make later rounds slow
        grid.delays, grid.pushed = [delay] * 2, []
        grid.pulled, clock.naps = [], []
        result = polling.exchange([instruction(10), instruction(11)])
        assert len(result.replies) == 2
        assert result.seconds <= max(delay, 0.6 * 1.05) + 0.15
    assert len(clock.naps) == 1


def test_an_evaluation_does_not_wait_as_long_as_a_training() -> None:
    clock = Clock()
    grid = FakeGrid(clock, [10.0])
    polling = PollingGrid(grid, LIMITS, clock=clock, sleep=clock.sleep)
    for kind, delay in (*[("train", 10.0)] * 4, ("evaluate", 0.1)):
        grid.delays, grid.pushed = [delay], []
        assert polling.exchange([instruction(10, kind)]).seconds <= delay + 0.15
