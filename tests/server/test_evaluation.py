"""Weighing clients' metrics."""

import math

import pytest

from common.wire.messages import EvaluateReply
from server.evaluation import PLAUSIBLE, summarise


def reply(weight: float, **metrics: float) -> EvaluateReply:
    return EvaluateReply(1, metrics, dict.fromkeys(metrics, weight))


def test_means_are_weighted_by_the_records_they_are_means_of() -> None:
    """(1·0.2 + 3·0.6)/4 = 0.5, whichever client comes first."""
    replies = {"bob": reply(3, loss=0.6), "ann": reply(1, loss=0.2)}
    evaluation = summarise(replies)
    assert evaluation.metrics == {"loss": pytest.approx(0.5)}
    assert (list(evaluation.clients), evaluation.clients["bob"]) == (["ann", "bob"], {"loss": 0.6})


def test_root_mean_squares_pool_as_their_squares_whatever_stands_before_them() -> None:
    """√((1·.3² + 3·.1²)/4) = √.03; a mean of squares is a plain mean."""
    names = ("rmse", "rmse_local_mean", "global_rmse")
    replies = {
        "ann": reply(1, **dict.fromkeys(names, 0.3), mse=0.09),
        "bob": reply(3, **dict.fromkeys(names, 0.1), mse=0.01),
    }
    assert summarise(replies).metrics == pytest.approx(dict.fromkeys(names, math.sqrt(0.03)) | {"mse": 0.03})


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
        (-1e101, 5),
        (0.1, 1e101),
    ],
)
def test_a_metric_that_is_no_number_or_weighs_nothing_is_left_out_there_only(value: float, weight: float) -> None:
    odd = EvaluateReply(1, {"auc": value, "loss": 1.0}, {"auc": weight, "loss": 1.0})
    assert summarise({"ann": odd, "bob": reply(1, auc=0.8, loss=0.0)}).metrics == {"auc": 0.8, "loss": 0.5}


def test_one_client_s_nonsense_cannot_end_a_run() -> None:
    """Squares of 1e200 are no numbers; sums over clients that are just believed still are."""
    assert summarise({"ann": reply(1, rmse=1e200), "bob": reply(1, rmse=0.5)}).metrics == {"rmse": 0.5}
    crowd = {f"client-{k}": reply(PLAUSIBLE, rmse=PLAUSIBLE) for k in range(1000)}
    assert summarise(crowd).metrics == {"rmse": pytest.approx(PLAUSIBLE)}


def test_a_metric_without_a_weight_is_left_out() -> None:
    assert summarise({"ann": EvaluateReply(1, {"auc": 0.5}, {})}).metrics == {}


def test_nobody_measured_nothing() -> None:
    assert (summarise({}).metrics, summarise({}).clients) == ({}, {})
