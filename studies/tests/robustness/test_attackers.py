"""Attackers of the robustness study send what their attack says; a run counts who was named."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from client.session import Session
from deploy.simulation.clients import open_sessions
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.robustness import runs
from studies.robustness.attackers import DEVIATIONS, choose_attackers, flip_labels, shift, with_attackers
from studies.robustness.cases import (
    ALIE,
    ATTACKS,
    CLIENTS,
    HONEST,
    LABELS,
    METRICS,
    RULES,
    SCALED,
    SEEDS,
    SETTINGS,
    SHARES,
    Case,
    Setting,
    all_cases,
)

NODES = range(1, CLIENTS + 1)


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(SETTINGS, "rules", Setting("fedrule", 2))
    monkeypatch.setattr(runs, "FRESH_DATA", "demo:60-100")
    runs._fresh_learner.cache_clear()
    yield
    runs._fresh_learner.cache_clear()


def test_the_cases_are_all_attacks_rules_and_shares_once() -> None:
    keys = [case.key for case in all_cases()]
    assert len(keys) == len(set(keys))
    for task in SETTINGS:
        for attack in ATTACKS:
            assert {Case(task, attack, rule, share).key for rule in RULES for share in SHARES} <= set(keys)
        assert {Case(task, HONEST, rule).key for rule in RULES} <= set(keys)


def test_attackers_of_a_small_share_are_among_those_of_a_large_one() -> None:
    few, many = (set(choose_attackers(Case("rules", SCALED, "none", s), NODES, 1)) for s in (0.1, 0.3))
    assert (len(few), len(many)) == (2, 6)
    assert few < many
    assert {*choose_attackers(Case("rules", SCALED, "none", 0.3), NODES, 2)} != many


def test_alie_sends_the_mean_less_some_deviations() -> None:
    """Coordinates (1, 2) and (3, 2): mean (2, 2), deviation (1, 0)."""
    found = shift([{"w": np.array([1.0, 2.0], np.float32)}, {"w": np.array([3.0, 2.0], np.float32)}])
    np.testing.assert_allclose(found["w"], [2 - DEVIATIONS, 2])
    assert found["w"].dtype == np.float32


@pytest.mark.parametrize("task", SETTINGS)
def test_flipped_labels_are_flipped_back_by_a_second_flip(task: str) -> None:
    part = runs.partition_demo(task)[0]
    once = flip_labels(part, task)
    twice = flip_labels(once, task)
    assert [*map(labels, part.units)] == [*map(labels, twice.units)] != [*map(labels, once.units)]


def labels(unit) -> list[int]:
    arrays = [unit.rules[:, 2]] if hasattr(unit, "rules") else [session[1::2] for session in unit.sessions]
    return sorted(np.concatenate(arrays).tolist())


def test_only_attackers_get_another_session() -> None:
    sessions, _ = open_sessions(runs.partition_demo("rules"))
    for attack in ATTACKS:
        found = with_attackers(Case("rules", attack, "none", 0.1), sessions, [3, 7])
        changed = [node for node in NODES if type(found[node]) is not Session]
        assert changed == ([] if attack == LABELS else [3, 7])


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(("attack", "named"), [(HONEST, 0), (SCALED, 2), (ALIE, 0), (METRICS, 0)])
def test_a_run_counts_the_named_and_measures_the_model_on_fresh_homes(attack: str, named: int, tmp_path: Path) -> None:
    metrics = runs.measure(Case("rules", attack, "none", 0.1 if attack != HONEST else 0.0), 0, tmp_path).metrics
    assert (metrics["named"], metrics["mistaken"]) == (named, 0)
    assert metrics["attackers"] == (0 if attack == HONEST else 2)
    assert metrics["seconds"] > 0
    assert 0 <= metrics["hr20"] <= 1
    assert (metrics["shown_hr20"] > 0.6) == (attack == METRICS)
    assert not [*tmp_path.iterdir()], "folders of runs are removed"


def test_the_study_has_as_many_seeds_as_it_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "measure", lambda case, seed, folder: Trial({"hr20": float(seed)}))
    store = Store(tmp_path, Results())
    runs.compute(Selection(sets=("rules",), only=(f"{HONEST}/none-0",)), store)
    [row] = store.results.rows.values()
    assert (row.key.row, sorted(row.trials)) == ("none-0", list(range(SEEDS)))
