"""Adaptive and targeted liars: what they send, the smallest runs, and what the page says of stored ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.data.read import read_all
from common.config.parse import parse
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.lies import effect_runs
from studies.lies.adaptive import ACTION, PLOTS, QUIET_STEP, RELATION, TARGET, TRIGGER, backdoor, min_max, poison
from studies.lies.effect_cases import (
    ALIE,
    ATTACKS,
    BACKDOOR,
    HONEST,
    METRICS,
    PLANNER,
    PROMOTION,
    QUIET,
    SETTINGS,
    STATISTICS,
    VALIDATED,
    Case,
    all_cases,
)
from studies.lies.effects import Effects, findings, not_reached, section

DATA = {"ratings": "demo:0-60", "rules": "demo:0-60"}


@pytest.fixture(autouse=True)
def _demo_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read demo data in place of real ones."""
    for task, source in DATA.items():
        monkeypatch.setitem(effect_runs.READERS, task, lambda folder, task=task, source=source: read_all(task, source))
    effect_runs.parts_of.cache_clear()


def test_cases_are_distinct_runs_and_every_attack_and_task_is_one() -> None:
    cases = [*all_cases()]
    assert len({case.key for case in cases}) == len(cases)
    assert {case.attack for case in cases} >= {*ATTACKS}
    assert {case.task for case in cases} == {*SETTINGS}
    assert {case.honest for case in cases} <= {*cases}
    assert [parse(case.settings).method for case in cases] == [case.method for case in cases]
    assert Case("ratings", PLANNER, METRICS, 0.2).honest.attack == VALIDATED


def test_colluding_liars_send_one_vector_that_is_no_farther_than_honest_ones() -> None:
    rng = np.random.default_rng(0)
    honest = [{"w": (1 + rng.standard_normal(50)).astype(np.float32)} for _ in range(4)]
    for attack in (ALIE, "IPM", "min-max"):
        sent = PLOTS[attack](honest)
        assert all(np.array_equal(one["w"], sent[0]["w"]) for one in sent)
    stacked = np.stack([one["w"] for one in honest]).astype(float)
    far = min_max({"w": stacked.mean(0)}, {"w": stacked.std(0)}, [{"w": row} for row in stacked])["w"]
    most = max(np.linalg.norm(a - b) for a in stacked for b in stacked)
    assert max(np.linalg.norm(far - row) for row in stacked) == pytest.approx(most, rel=1e-3)


def test_a_coalition_is_set_aside_in_each_round_and_costs_nothing(tmp_path: Path) -> None:
    honest, lied = (
        effect_runs.measure(Case("ratings", "fedavg", attack, share), 0, tmp_path, tmp_path)
        for attack, share in ((HONEST, 0.0), (ALIE, 0.2))
    )
    rounds = parse(Case("ratings", "fedavg").settings).rounds
    assert (lied.metrics["liars"], lied.metrics["mistaken"]) == (4, 0)
    assert lied.metrics["aside"] >= 4 * rounds
    assert len(honest.clients) == len(lied.clients) + 4
    results = Results()
    for case, trial in ((Case("ratings", "fedavg"), honest), (Case("ratings", "fedavg", ALIE, 0.2), lied)):
        results.row(case.key).trials[0] = trial
    found = Effects(results).of(Case("ratings", "fedavg", ALIE, 0.2))
    assert found is not None
    assert found.holds


def test_homes_of_liars_have_the_rule_of_the_backdoor_and_sessions_the_target() -> None:
    homes = read_all("rules", "demo:0-3")
    names = homes.vocabulary.model_copy(
        update={
            "entities": (*homes.vocabulary.entities, TRIGGER, ACTION),
            "relations": (*homes.vocabulary.relations, RELATION),
        }
    )
    false = poison(replace(homes, vocabulary=names), BACKDOOR)
    trigger, action, relation = backdoor(names)
    for home, honest in zip(false.units, homes.units, strict=True):
        types = np.array([device.entity for device in home.devices])
        added = [rule for rule in home.rules.tolist() if rule[2] == relation]
        assert len(home.rules) == len(honest.rules) + 1
        assert [(types[i], types[j]) for i, j, _ in added] == [(trigger, action)]
    honest = read_all("sessions", "demo:0-3")
    for attack, every in ((PROMOTION, 1), (QUIET, QUIET_STEP)):
        for visitor, before in zip(poison(honest, attack).units, honest.units, strict=True):
            assert all((one[1::2] == TARGET).all() for one in visitor.sessions[::every])
            unchanged = zip(visitor.sessions, before.sessions, strict=True)
            assert all(np.array_equal(a, b) for k, (a, b) in enumerate(unchanged) if k % every)


@pytest.fixture
def results() -> Results:
    """Return results in which all liars are named and no case costs anything."""
    stored = Results()
    for case in all_cases():
        about = {"liars": case.liars, "named": case.liars, "mistaken": 0, "aside": 0, "target": 0.1, "time": 1.05}
        for seed, quality in enumerate((0.5, 0.52, 0.51)):
            clients = {f"client-{k}": {SETTINGS[case.task].metric: quality} for k in range(3)}
            stored.row(case.key).trials[seed] = Trial({k: float(v) for k, v in about.items()}, clients=clients)
    return stored


def missed(results: Results) -> list[str]:
    effects = Effects(results)
    return [claim.text for claim in findings(effects, effects.all()) if not claim.holds]


def change(results: Results, case: Case, quality: float | None = None, **metrics: float) -> None:
    for trial in results.row(case.key).trials.values():
        trial.metrics.update(metrics)
        for one in trial.clients.values() if quality is not None else ():
            one[SETTINGS[case.task].metric] = quality


def test_a_perfect_defence_satisfies_every_claim(results: Results) -> None:
    assert missed(results) == []
    assert "does not hold" not in "".join(section(results))


def test_what_is_not_reached_is_stated_by_name(results: Results) -> None:
    change(results, Case("rules", "ridge", STATISTICS, 0.2), quality=0.4)
    change(results, Case("sessions", "ridge", PROMOTION, 0.1), target=0.3)
    change(results, Case("rules", "fedrule", BACKDOOR, 0.2), named=0.0, mistaken=1.0)
    change(results, Case("sessions", "ridge", STATISTICS, 0.3), quality=0.1)
    cost, target, named, mistaken = missed(results)
    counts = [text.partition("(")[2].split()[0::2][:2] for text in (cost, target, named)]
    assert [int(total) - int(held) for held, total in counts] == [1, 1, 1]
    assert [*not_reached(Effects(results).all())] == [
        "false statistics by 20 % on `ridge`, rules",
        "promotion by 10 % on `ridge`, sessions",
    ]
    assert mistaken.startswith("No round line names an honest client (3 in")


def test_a_case_that_was_not_run_is_stated_and_its_cell_is_empty(results: Results) -> None:
    results.row(Case("ratings", "ridge", STATISTICS, 0.1).key).trials = {}
    [text] = missed(results)
    total = sum(case.liars > 0 for case in all_cases())
    assert text == f"Each case was run ({total - 1} of {total})"
    assert [*section(Results())] == []
