"""Ranking metrics of the next item, by hand."""

from math import isnan, log2

import numpy as np
import pytest

from common.tasks.sessions.task import ranks, session_metrics


def test_ranks_count_from_one() -> None:
    logits = np.array([[0.1, 0.4, 0.3], [0.1, 0.4, 0.3], [0.1, 0.4, 0.3]])
    assert ranks(logits, np.array([0, 1, 2])).tolist() == [3, 1, 2]


def test_equals_share_the_mean_of_their_places() -> None:
    assert ranks(np.zeros((1, 5)), np.array([2])).tolist() == [3]
    assert ranks(np.array([[2.0, 1.0, 1.0, 0.0]]), np.array([1])).tolist() == [2.5]


def test_metrics_by_hand() -> None:
    metrics = session_metrics(np.array([1.0, 4.0, 10.5, 20.0, 21.0]), np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    assert metrics == pytest.approx(
        {
            "hr10": 2 / 5,
            "hr20": 4 / 5,
            "mrr10": (1 + 1 / 4) / 5,
            "mrr20": (1 + 1 / 4 + 1 / 10.5 + 1 / 20) / 5,
            "ndcg20": (1 + 1 / log2(5) + 1 / log2(11.5) + 1 / log2(21)) / 5,
            "loss": 2.0,
        }
    )


def test_a_diverged_model_has_no_rank_and_no_hit() -> None:
    places = ranks(np.array([[np.nan, np.nan], [0.0, 1.0]]), np.array([0, 1]))
    assert isnan(places[0])
    assert places[1] == 1
    assert all(isnan(value) for value in session_metrics(places, np.array([np.nan, 0.3])).values())


def test_no_case_no_metric() -> None:
    assert session_metrics(np.zeros(0), np.zeros(0)) == {}
