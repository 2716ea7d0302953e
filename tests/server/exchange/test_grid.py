"""Grid wrapper: end of the wait, order of replies, and reported numbers."""

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

from server.exchange.grid import LOST_CODES, Exchange, PollingGrid, RoundLimits, _is_lost, content_size, limit_to
from tests.server.fake_grid import LIMITS, Clock, FakeGrid, content, exchange, instruction

NEVER = 1e9


def test_all_replies_are_waited_for_and_returned_in_order_of_the_messages() -> None:
    result, _, _ = exchange([0.3, 0.1, 0.2])
    assert [reply.metadata.src_node_id for reply in result.replies] == [10, 11, 12]
    assert (result.asked, result.missing, result.failed) == ((10, 11, 12), (), {})
    assert result.seconds == pytest.approx(0.3, abs=0.05)


def test_pauses_grow_while_nothing_arrives_and_restart_after_an_arrival() -> None:
    _, _, clock = exchange([5.0, 10.0], replace(LIMITS, patience=2))
    assert clock.naps[0] == pytest.approx(0.0028)
    assert max(clock.naps) == pytest.approx(0.1)
    resets = [i for i in range(1, len(clock.naps)) if clock.naps[i] == pytest.approx(0.002)]
    assert len(resets) == 1, "one pause is short again: after the first of two replies"


def test_pulls_only_what_is_missing() -> None:
    _, grid, _ = exchange([0.0, 0.5])
    assert grid.pulled[0] == {"m0", "m1"}
    assert all(ids == {"m1"} for ids in grid.pulled[1:])


def test_a_lost_client_costs_patience_instead_of_the_deadline() -> None:
    result, _, _ = exchange([2.0, 3.0, NEVER])
    assert result.missing == (12,)
    assert result.seconds == pytest.approx(3.0 * (1 + 1.0) + 1.0, abs=0.25)  # quorum of 2 after 3 s


def test_a_slow_client_has_its_share_of_time() -> None:
    result, _, _ = exchange([2.0, 3.0, 5.5])
    assert result.missing == ()
    assert len(result.replies) == 3


def test_below_the_quorum_the_deadline_ends_the_wait() -> None:
    result, _, _ = exchange([1.0, NEVER, NEVER])
    assert result.missing == (11, 12)
    assert result.seconds == pytest.approx(60.0)


def test_a_timeout_shortens_the_deadline_and_never_lengthens_it() -> None:
    assert exchange([NEVER], timeout=5.0)[0].seconds == pytest.approx(5.0)
    assert exchange([NEVER], timeout=500.0)[0].seconds == pytest.approx(60.0)


def test_errors_are_answers_outside_the_quorum() -> None:
    result, _, _ = exchange([0.0, 0.0, NEVER], replace(LIMITS, deadline=20.0), broken=[0])
    assert result.failed == {10: "reason 0"}
    assert result.seconds == pytest.approx(20.0), "one usable reply of two required: waits for the third"


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


def test_bytes_are_counted_from_the_content() -> None:
    one = content(0).array_records["arrays"].count_bytes()
    assert one > 8 * 4
    result, _, _ = exchange([0.0, 0.0, 0.0], broken=[1])
    assert (result.bytes_down, result.bytes_up) == (3 * one, 2 * one)


def test_send_and_receive_returns_the_replies_and_calls_the_callback() -> None:
    clock, seen = Clock(), list[Exchange]()
    polling = PollingGrid(FakeGrid(clock, [0.1, 0.0]), LIMITS, seen.append, clock, clock.sleep)
    replies = polling.send_and_receive([instruction(10), instruction(11)])
    assert [tuple(replies)] == [e.replies for e in seen]
    assert len(replies) == 2


def test_answers_are_taken_as_they_arrive() -> None:
    clock, taken = Clock(), list[tuple[int, float]]()
    grid = FakeGrid(clock, [0.0, 0.0, 1.0])
    polling = PollingGrid(
        grid, LIMITS, clock=clock, sleep=clock.sleep, take=lambda node, _: taken.append((node, clock()))
    )
    polling.send_and_receive([instruction(10 + k) for k in range(3)])
    assert [node for node, _ in taken] == [10, 11, 12]
    assert taken[1][1] < 101 <= taken[2][1]


def test_a_reply_beyond_the_limit_of_its_request_is_an_error_before_it_is_taken() -> None:
    clock, errors = Clock(), list[bool]()
    polling = PollingGrid(FakeGrid(clock, [0.0, 0.0]), LIMITS, clock=clock, sleep=clock.sleep)
    size = content_size(content(0))
    asked = [limit_to(instruction(10), size), limit_to(instruction(11), size - 1)]
    result = polling.exchange(asked, take=lambda node, reply: errors.append(reply.has_error()))
    assert result.failed == {11: f"reply of {size} bytes, at most {size - 1} can be needed"}
    assert errors == [False, True]


def test_all_else_is_delegated_to_the_wrapped_grid() -> None:
    polling = PollingGrid(FakeGrid(Clock(), []), LIMITS)
    assert list(polling.get_node_ids()) == [10, 11]
    assert [node.node_id for node in polling.get_nodes()] == [10, 11]
    assert polling.create_message(content(0), "train", 7, "g").metadata.dst_node_id == 7


def test_a_node_that_the_superlink_reports_as_lost_is_missing() -> None:
    """The SuperLink reports a lost node by its own error codes, which are pinned here."""
    from flwr.common.constant import ErrorCode

    assert LOST_CODES == (
        ErrorCode.MESSAGE_UNAVAILABLE,
        ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
        ErrorCode.NODE_UNAVAILABLE,
    )
    assert _is_lost(Message(Error(5, "Node Unavailable"), reply_to=instruction(1)))
    assert not _is_lost(Message(Error(1000, "refused"), reply_to=instruction(1)))


def test_the_first_poll_comes_after_most_of_the_shortest_recent_wait() -> None:
    clock = Clock()
    grid = FakeGrid(clock, [1.0, 1.0])
    polling = PollingGrid(grid, LIMITS, clock=clock, sleep=clock.sleep)
    for delay in (*[1.0] * 4, 3.0, 0.1):  # one slow round must not delay later ones
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


ARRAYS = ArrayRecord([np.zeros(8, np.float32)])
CONFIG = ConfigRecord({"a": "text", "b": b"bytes", "c": True, "d": 3, "e": [1.0, 2.0], "f": ["x", "yz"]})
METRICS = MetricRecord({"loss": 0.5, "steps": [1, 2, 3]})


@pytest.mark.parametrize("record", [ARRAYS, CONFIG, METRICS])
def test_a_size_is_the_one_that_flower_counts(record: ArrayRecord | ConfigRecord | MetricRecord) -> None:
    assert content_size(RecordDict({"fedloom": record})) == record.count_bytes()


def test_empty_texts_and_lists_of_a_client_have_a_size() -> None:
    """Flower's own count raises on both, and would end the round of all clients."""
    record = ConfigRecord({"name": "", "blob": b"", "list": []})
    with pytest.raises((ValueError, IndexError)):
        record.count_bytes()
    assert content_size(RecordDict({"fedloom": record})) == len("namebloblist")


def test_invalid_limits_are_refused() -> None:
    for limits in ((0, 1.0, 0.0), (1, 0.0, 0.0), (1, 1.0, -1.0)):
        with pytest.raises(ValueError, match="min_replies"):
            RoundLimits(*limits)
