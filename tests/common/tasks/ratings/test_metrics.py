"""Errors of predicted ratings against scikit-learn, and pooling over clients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, mean_absolute_error, mean_squared_error, root_mean_squared_error

from common.tasks.ratings.task import f1, rating_metrics
from common.wire.messages import EvaluateReply
from server.aggregation.metrics import summarize

SHARES = st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.6, 1.0])
PAIRS = st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=12)


@given(PAIRS)
def test_metrics_are_the_library_s(pairs: list[tuple[float, float]]) -> None:
    predicted, truth = np.array(pairs).T
    metrics, weights = rating_metrics(predicted, truth)
    expected = {
        "rmse": root_mean_squared_error(truth, predicted),
        "mae": mean_absolute_error(truth, predicted),
        "loss": mean_squared_error(truth, predicted),
    }
    if (truth >= 0.5).any() or (predicted >= 0.5).any():
        expected["f1"] = f1_score(truth >= 0.5, predicted >= 0.5)
    assert metrics == pytest.approx(expected)
    assert metrics.keys() == weights.keys()


@given(st.lists(PAIRS, min_size=1, max_size=4))
def test_over_clients_they_are_what_they_are_over_all_ratings_together(
    clients: list[list[tuple[float, float]]],
) -> None:
    """From five clients on, weights have a limit."""
    each = [rating_metrics(*np.array(pairs).T) for pairs in clients]
    replies = {f"client-{k}": EvaluateReply(1, *both) for k, both in enumerate(each)}
    whole, _ = rating_metrics(*np.array([pair for pairs in clients for pair in pairs]).T)
    assert summarize(replies).metrics == pytest.approx(whole)


def test_by_hand() -> None:
    """Check one hit, one false alarm, one miss: F1 = 2/(2 + 1 + 1)."""
    assert f1(np.array([0.7, 0.5, 0.2]), np.array([0.9, 0.1, 0.5])) == (0.5, 4.0)
    metrics, _ = rating_metrics(np.array([0.7, 0.5]), np.array([0.9, 0.1]))
    assert metrics["rmse"] == pytest.approx(np.sqrt(0.1))


def test_nothing_liked_has_no_f1_and_nothing_measured_no_metrics() -> None:
    assert rating_metrics(np.array([0.1]), np.array([0.2]))[0].keys() == {"rmse", "mae", "loss"}
    assert rating_metrics(np.zeros(0), np.zeros(0)) == ({}, {})
