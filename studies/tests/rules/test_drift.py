"""Drift laboratory: homes whose households differ by a dial, and rows of both methods on them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from common.config.parse import parse
from common.tasks.rules.vocabulary import demo_catalogue
from studies.harness.bench import Bench
from studies.harness.results import Results
from studies.harness.row import About, Row, RowKey, Trial
from studies.harness.store import Store
from studies.rules import drift, drift_section
from studies.rules.dissimilarity import dissimilarity, of_run


@pytest.mark.parametrize("specialisation", drift.SPECIALISATIONS)
def test_every_row_is_a_configuration(specialisation: float) -> None:
    rows = drift.rows_of(specialisation)
    configs = {one.key: parse({**one.settings, "seed": 1}) for one in rows}
    assert len(configs) == len(rows)
    assert {(config.rounds, config.model) for config in configs.values()} == {(drift.ROUNDS, "paper")}
    cohorts = {config.federation.cohort for config in configs.values()}
    assert cohorts == ({1.0, *drift.COHORTS} if specialisation == drift.COHORT_SPECIALISATION else {1.0})


def test_dissimilarity_by_hand() -> None:
    """The mean of (3, 0) and (1, 2) is (2, 1): (9 + 5)/2 over 5."""
    assert dissimilarity([torch.tensor([3.0, 0.0]), torch.tensor([1.0, 2.0])]) == pytest.approx(1.4)
    assert dissimilarity([torch.ones(2)] * 3) == pytest.approx(1.0)


def test_dissimilarity_of_a_run_is_at_least_one(tmp_path: Path) -> None:
    homes = replace(drift.read_drift(1.0, 60), units=drift.read_drift(1.0, 60).units[:4])
    bench = Bench("drift-1", lambda: homes, Store(tmp_path, Results()), of_run)
    settings = {**drift.MEASURED_GRADIENTS.settings, "rounds": 1, "evaluate-every": 1, "seed": 0}
    assert bench.train("drift", settings).metrics[drift.DISSIMILARITY] > 1


def test_homes_have_enough_rules_and_twins_share_a_type() -> None:
    homes, twins = drift.read_drift(1.0).units, drift.read_twins().units
    assert min(len(home.rules) for home in homes) >= drift.LEAST_RULES
    assert 0 < len(twins) < len(homes)
    assert all(len({device.entity for device in home.devices}) < len(home.devices) for home in twins)


def test_homes_use_fewer_relations_of_their_own_the_more_households_differ() -> None:
    spreads = []
    for specialisation in drift.ENDS:
        homes = drift.read_drift(specialisation).units
        counts = np.array(
            [np.bincount(home.rules[:, 2], minlength=len(demo_catalogue().relations)) for home in homes], float
        )
        shares = counts / counts.sum(axis=1, keepdims=True)
        spreads.append(((shares - shares.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert spreads[1] > 1.2 * spreads[0]


def test_the_section_pairs_both_methods() -> None:
    results = Results()
    for name, rank in (("fedgnn", 12.0), ("fedrule", 10.5)):
        key = RowKey("drift-3", drift.DRIFT, f"{name}-12")
        results.rows[key] = Row(key, About(name), {0: Trial({"loss": 0.5, "rise": 0.1, "mr0": rank})})
    _, text = drift_section.section(results)
    assert "| 3 | 12 local steps | 1 |" in text
    assert "−1.50" in text
    assert list(drift_section.section(Results())) == []
