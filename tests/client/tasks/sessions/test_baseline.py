"""The local line of the default session model, by hand."""

from math import log

import numpy as np
import pytest

from client.tasks.sessions.baseline import Known, VisitHistory, features, pad
from common.tasks.sessions.counts import KEYS, VALUES, SharedRules, count_rules
from common.tasks.sessions.history_blend import FEATURES

A, B, C, D = range(4)


def clicks(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def of_each(known: Known) -> dict[int, list[float]]:
    return dict(zip(known.items.tolist(), known.values.tolist(), strict=True))


SESSIONS = [clicks(A, B, A), clicks(A, B, C)]


def test_features_are_visits_bigrams_recency_and_the_last_item() -> None:
    known = of_each(features(clicks(D, A), VisitHistory.of(SESSIONS)))
    #             visits        after a       recency last  shared
    assert known[A] == pytest.approx([log(1 + 3), 0.0, 1.0, 1.0, 0.0])
    assert known[B] == pytest.approx([log(1 + 2), log(1 + 2), 0.0, 0.0, 0.0])
    assert known[C] == pytest.approx([log(1 + 1), 0.0, 0.0, 0.0, 0.0])
    assert known[D] == pytest.approx([0.0, 0.0, 0.8, 0.0, 0.0])


def test_a_repeated_click_counts_by_its_latest() -> None:
    assert of_each(features(clicks(A, B, A), VisitHistory.of([])))[A][2] == 1.0


def test_a_training_session_does_not_tell_its_own_answer() -> None:
    before = VisitHistory.of(SESSIONS).without(SESSIONS[0])
    assert before == VisitHistory.of(SESSIONS[1:])
    assert of_each(features(clicks(A), before))[B] == pytest.approx([log(1 + 1), log(1 + 1), 0.0, 0.0, 0.0])


def test_shared_rules_are_the_last_feature() -> None:
    counts = count_rules([clicks(A, D)], 4)
    known = of_each(features(clicks(A), VisitHistory.of([]), SharedRules(counts[KEYS], counts[VALUES], 4)))
    assert known[D] == pytest.approx([0.0, 0.0, 0.0, 0.0, log(1 + 1)])


def test_padding_adds_nothing() -> None:
    two = Known(np.array([A, C]), np.array([[1.0] * len(FEATURES), [2.0] * len(FEATURES)], np.float32))
    none = Known(np.zeros(0, np.int64), np.zeros((0, len(FEATURES)), np.float32))
    index, value = pad([two, none])
    np.testing.assert_array_equal(index, [[A, C], [0, 0]])
    assert value.shape == (2, 2, len(FEATURES))
    assert value[1].sum() == 0
    assert pad([])[0].shape == (0, 1)
