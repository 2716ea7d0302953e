"""Ranges of the numbers that clients report."""

import math

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from common.contribution import MAX_PLAUSIBLE
from common.errors import WireError
from common.tasks.registry import TASKS
from common.wire.messages import EvaluateReply
from server.exchange.grid import limit_to, refuse_oversize
from server.round.checks import check_loss, check_metrics, check_paired, limit_weight, lowest_loss

RULES = TASKS["rules"]


def reply(**metrics: float) -> EvaluateReply:
    return EvaluateReply(3, metrics, dict.fromkeys(metrics, 4.0))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (reply(accuracy=0.5), "metric 'accuracy' is not one of task 'rules'"),
        (reply(hr20=1.01), "hr20 = 1.01 is outside 0 to 1"),
        (reply(auc=-0.1), "auc = -0.1 is outside 0 to 1"),
        (reply(loss=-1e11), "loss = -1e+11 is outside 0 to inf"),
        (reply(global_hr5=2.0), "global_hr5 = 2 is outside 0 to 1"),
        (reply(hrx=0.5), "metric 'hrx' is not one of task 'rules'"),
        (reply(**{"\x1b[31m": 0.5}), "metric '�' is not one of task 'rules'"),
        (EvaluateReply(3, {}, {"hr20": 1e100}), "weight 1e+100 of hr20, at most 1000 is possible"),
        (EvaluateReply(3, {"auc": 0.5}, {"auc": math.nan}), "weight nan of auc"),
        (EvaluateReply(2, {}, {}), "reply is of round 2, not of round 3"),
    ],
)
def test_what_no_client_can_measure_is_refused(value: EvaluateReply, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        check_metrics(value, 3, RULES, 1000.0)
    assert reason in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf, 2 * MAX_PLAUSIBLE])
def test_the_metrics_of_a_diverged_model_are_left_to_the_evaluation(value: float) -> None:
    check_metrics(reply(hr20=value, loss=value), 3, RULES, 1000.0)


def test_rounding_beyond_the_range_is_accepted() -> None:
    check_metrics(reply(hr20=1 + 1e-9, mr1=1 - 1e-9, hr10_shown=0.0), 3, RULES, 1000.0)


@pytest.mark.parametrize("loss", [math.nan, math.inf, 1.7e308, -0.1])
def test_an_impossible_training_loss_is_refused(loss: float) -> None:
    with pytest.raises(WireError, match="invalid reply: loss"):
        check_loss(loss, lowest_loss(RULES))


def test_the_largest_weight_follows_the_records_unless_they_are_hidden() -> None:
    assert limit_weight(80_000, 0.2, hides_examples=False) == 1_000_000
    assert limit_weight(3, 0.2, hides_examples=False) == 1000
    assert limit_weight(1, 0.2, hides_examples=True) == MAX_PLAUSIBLE


def test_a_reply_larger_than_its_request_allows_is_an_error() -> None:
    asked = limit_to(Message(RecordDict(), 1, "train"), 100)
    for size, has_content in ((50, True), (1000, False)):
        reply = Message(RecordDict({"a": ConfigRecord({"b": bytes(size)})}), reply_to=asked)
        assert refuse_oversize(reply, asked).has_content() == has_content
    assert refuse_oversize(reply, asked).error.reason == "reply of 1,001 bytes, at most 100 can be needed"
    assert refuse_oversize(reply, Message(RecordDict(), 1, "train")) is reply


def test_every_declared_metric_has_a_range_that_holds_zero_or_one() -> None:
    for task in TASKS:
        for spec in TASKS[task].metrics:
            assert -math.inf < spec.low <= 1 <= spec.high, (task, spec.key)


def test_metrics_of_a_model_trained_alone_have_the_ranges_of_the_task() -> None:
    check_metrics(reply(alone_hr20=0.5, alone_hr20_shown=0.5), 3, RULES, 1000.0)
    for metrics, reason in (
        ({"alone_hr20": 1.5}, "alone_hr20 = 1.5 is outside 0 to 1"),
        ({"alone_mood": 0.5}, "metric 'alone_mood' is not one of task"),
    ):
        with pytest.raises(WireError, match=reason):
            check_metrics(reply(**metrics), 3, RULES, 1000.0)


def test_a_loss_that_is_no_error_may_be_negative() -> None:
    check_loss(-0.1, lowest_loss(TASKS["ratings"]))
    with pytest.raises(WireError, match="invalid reply: loss"):
        check_loss(math.nan, lowest_loss(TASKS["ratings"]))


@pytest.mark.parametrize(
    ("key", "sums"),
    [
        ("simple", [2000, 1, 1, 1, 0]),
        ("simple", [10, 11, 13, 10, 0]),
        ("alone", [10, -10.5, 12, 0, 10]),
        ("both", [10, -10.5, 12, 0, 10]),
        ("friend", [10, 1, 1, 1, 0]),
    ],
)
def test_sums_that_no_values_of_a_metric_have_are_refused(key: str, sums: list[float]) -> None:
    check_paired({"simple": np.array([10, -10, 10, 0, 10.0])}, RULES, 1000.0)
    with pytest.raises(WireError, match=f"sums (of|') ?{key}"):
        check_paired({key: np.array(sums, np.float64)}, RULES, 1000.0)
