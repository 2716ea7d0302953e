"""Weighted means of clients' metrics."""

import math

import pytest

from common.contribution import MAX_PLAUSIBLE
from common.wire.messages import EvaluateReply
from server.aggregation.metrics import pool_trimmed, summarize, trim


def reply(weight: float, **metrics: float) -> EvaluateReply:
    return EvaluateReply(1, metrics, dict.fromkeys(metrics, weight))


def test_means_are_weighted_by_their_numbers_of_records() -> None:
    """(1·0.2 + 3·0.6)/4 = 0.5, whichever client comes first."""
    replies = {"bob": reply(3, loss=0.6), "ann": reply(1, loss=0.2)}
    evaluation = summarize(replies)
    assert evaluation.metrics == {"loss": pytest.approx(0.5)}
    assert (list(evaluation.clients), evaluation.clients["bob"]) == (["ann", "bob"], {"loss": 0.6})


def test_root_mean_squares_are_averaged_as_squares_under_any_prefix() -> None:
    """√((1·.3² + 3·.1²)/4) = √.03; a mean of squares is a plain mean."""
    names = ("rmse", "rmse_local_mean", "global_rmse")
    replies = {
        "ann": reply(1, **dict.fromkeys(names, 0.3), mse=0.09),
        "bob": reply(3, **dict.fromkeys(names, 0.1), mse=0.01),
    }
    assert summarize(replies).metrics == pytest.approx(dict.fromkeys(names, math.sqrt(0.03)) | {"mse": 0.03})


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        (math.nan, 5),
        (math.inf, 5),
        (0.1, 0),
        (0.1, -1),
        (0.1, math.nan),
        (0.1, math.inf),
        (1e200, 5),
        (-1.1e12, 5),
        (0.1, 1.1e12),
    ],
)
def test_a_metric_that_is_implausible_or_without_weight_is_omitted_for_that_client(value: float, weight: float) -> None:
    odd = EvaluateReply(1, {"auc": value, "loss": 1.0}, {"auc": weight, "loss": 1.0})
    assert summarize({"ann": odd, "bob": reply(1, auc=0.8, loss=0.0)}).metrics == {"auc": 0.8, "loss": 0.5}


def test_implausible_metrics_of_one_client_cannot_end_a_run() -> None:
    """Squares of 1e200 are no numbers; sums over clients that are just believed still are."""
    assert summarize({"ann": reply(1, rmse=1e200), "bob": reply(1, rmse=0.5)}).metrics == {"rmse": 0.5}
    crowd = {f"client-{k}": reply(MAX_PLAUSIBLE, rmse=MAX_PLAUSIBLE) for k in range(1000)}
    assert summarize(crowd).metrics == {"rmse": pytest.approx(MAX_PLAUSIBLE)}


def test_a_metric_without_a_weight_is_left_out() -> None:
    assert summarize({"ann": EvaluateReply(1, {"auc": 0.5}, {})}).metrics == {}


def test_without_clients_there_are_no_metrics() -> None:
    assert (summarize({}).metrics, summarize({}).clients) == ({}, {})


def test_dropped_metrics_are_noted_by_client() -> None:
    odd = EvaluateReply(1, {"auc": math.nan, "loss": -2e12, "hr20": 0.5}, {})
    evaluation = summarize({"ann": odd, "bob": reply(1, auc=0.8)})
    assert evaluation.dropped == {"ann": "auc = nan and 1 further metric left out"}
    assert evaluation.clients["ann"] == {"hr20": 0.5}


def test_from_five_clients_on_the_value_that_selects_leaves_out_the_ends() -> None:
    few = {f"c{k}": reply(1, hr20=0.1 * k) for k in range(4)}
    assert math.isnan(summarize(few).selection("hr20"))
    many = {f"c{k}": reply(1, hr20=0.1 * k) for k in range(1, 5)} | {"liar": reply(1, hr20=1.0)}
    assert summarize(many).selection("hr20") == pytest.approx(0.3)
    assert summarize(many).metrics["hr20"] == pytest.approx(0.4)
    assert trim(dict.fromkeys(map(str, range(30)), 0.5)) == set(map(str, range(30))) - {"0", "1", "10", "7", "8", "9"}


def test_shown_metrics_limit_a_weight_to_ten_times_the_median() -> None:
    """Nine weights of 1 and one limited to 10: 10·1/19. Four clients have no outlier."""
    honest = {f"c{k}": reply(1, hr20=0.0) for k in range(9)}
    assert summarize({**honest, "liar": reply(1000, hr20=1.0)}).metrics["hr20"] == pytest.approx(10 / 19)
    few = {f"c{k}": reply(1, hr20=0.0) for k in range(3)}
    assert summarize({**few, "large": reply(97, hr20=1.0)}).metrics["hr20"] == pytest.approx(0.97)


def test_no_client_weighs_more_than_ten_times_the_median() -> None:
    """Kept are .2, .3 and .4, the last with a weight of 10: (.2 + .3 + 10·.4)/12."""
    values = {f"c{k}": (0.1 * k, 1.0 if k != 4 else 1e11) for k in range(1, 6)}
    assert pool_trimmed("hr20", values) == pytest.approx(4.5 / 12)
