"""History features of the default session model, by hand."""

from math import log

import numpy as np
import pytest

from client.tasks.sessions.baseline import FeatureRows, ItemFeatures, VisitHistory, history_features
from common.tasks.sessions.slist import FEATURES

A, B, C, D = range(4)


def clicks(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def by_item(features: ItemFeatures) -> dict[int, list[float]]:
    return dict(zip(features.items.tolist(), features.values.tolist(), strict=True))


SESSIONS = [clicks(A, B, A), clicks(A, B, C)]


def test_features_are_visits_bigrams_recency_and_the_last_item() -> None:
    rows = by_item(history_features(clicks(D, A), VisitHistory.of(SESSIONS)))
    #             visits        after a       recency last  shared
    assert rows[A] == pytest.approx([log(1 + 3), 0.0, 1.0, 1.0, 0.0])
    assert rows[B] == pytest.approx([log(1 + 2), log(1 + 2), 0.0, 0.0, 0.0])
    assert rows[C] == pytest.approx([log(1 + 1), 0.0, 0.0, 0.0, 0.0])
    assert rows[D] == pytest.approx([0.0, 0.0, 0.8, 0.0, 0.0])


def test_a_repeated_click_counts_by_its_latest() -> None:
    assert by_item(history_features(clicks(A, B, A), VisitHistory.of([])))[A][2] == 1.0


def test_features_of_a_training_session_leave_the_session_out() -> None:
    before = VisitHistory.of(SESSIONS).without(SESSIONS[0])
    assert before == VisitHistory.of(SESSIONS[1:])
    assert by_item(history_features(clicks(A), before))[B] == pytest.approx([log(1 + 1), log(1 + 1), 0.0, 0.0, 0.0])


TWO = ItemFeatures(np.array([A, C]), np.array([[1.0] * len(FEATURES), [2.0] * len(FEATURES)], np.float32))
NONE = ItemFeatures(np.zeros(0, np.int64), np.zeros((0, len(FEATURES)), np.float32))
ONE = ItemFeatures(np.array([D]), np.array([[3.0] * len(FEATURES)], np.float32))


def test_padding_adds_nothing() -> None:
    index, value = FeatureRows.of([TWO, NONE]).pad()
    np.testing.assert_array_equal(index, [[A, C], [0, 0]])
    np.testing.assert_array_equal(value[0], TWO.values)
    assert value.shape == (2, 2, len(FEATURES))
    assert value[1].sum() == 0
    assert FeatureRows.of([]).pad()[0].shape == (0, 1)


@pytest.mark.parametrize("chosen", [slice(1, 9), np.array([False, True, True])], ids=["slice", "flags"])
def test_chosen_cases_keep_their_features(chosen: slice | np.ndarray) -> None:
    index, value = FeatureRows.of([TWO, NONE, ONE])[chosen].pad()
    np.testing.assert_array_equal(index, [[0], [D]])
    np.testing.assert_array_equal(value, [np.zeros((1, len(FEATURES))), ONE.values])
