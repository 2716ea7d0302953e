"""Membership of a session is guessed by a likelihood ratio with shadow clients."""

import numpy as np
import pytest

from studies.audit import members
from studies.audit.cases import Upload


def test_a_plain_update_shows_more_of_its_sessions_than_one_beside_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "CLIENTS", 16)
    monkeypatch.setattr(members, "SHADOWS", 4)
    rng = np.random.default_rng(0)
    plain, noised = (members.guess_members(Upload("", "", epsilon=e), 1, lambda: rng)["auc"] for e in (0.0, 8.0))
    assert plain > 0.7 > noised


def test_sessions_that_were_trained_on_have_the_larger_ratio() -> None:
    rng = np.random.default_rng(0)
    present, absent = rng.normal(2, 1, 8), rng.normal(0, 1, 8)
    ratios = [members._log_ratio(seen, present, absent) for seen in (2.0, 1.0, 0.0)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 0 > ratios[-1]


def test_quality_counts_ties_by_half_and_false_alarms_by_their_share() -> None:
    present = np.arange(400) < 200
    scores = np.where(present, 1.0, 0.0)
    assert members.quality(scores, present) == {"auc": 1.0, "tpr": 1.0}
    assert members.quality(np.zeros(400), present) == {"auc": 0.5, "tpr": 0.0}
    scores[200:202] = 2.0  # two of 200 absent sessions may be guessed present
    assert members.quality(scores, present) == {"auc": 0.99, "tpr": 1.0}
    scores[202] = 2.0
    assert members.quality(scores, present)["tpr"] == 0.0
