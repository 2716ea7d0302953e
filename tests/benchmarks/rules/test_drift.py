"""Drift laboratory: homes whose households differ by a dial, and rows of both methods on them."""

import numpy as np
import pytest

from benchmarks.harness.experiment import Experiment
from benchmarks.harness.results import Results
from benchmarks.harness.row import About, Row, RowKey, Trial
from benchmarks.rules import drift
from common.config.parse import parse
from common.tasks.rules.demo import demo_catalogue


@pytest.mark.parametrize("one", drift.EXPERIMENTS, ids=[one.key for one in drift.EXPERIMENTS])
def test_every_row_is_a_configuration(one: Experiment) -> None:
    config = parse({**one.settings, "seed": 1})
    assert (config.rounds, config.model) == (drift.ROUNDS, "paper")


def test_homes_have_enough_rules_and_twins_share_a_type() -> None:
    homes, twins = drift.read_drift(1.0).units, drift.read_twins().units
    assert min(len(home.rules) for home in homes) >= drift.LEAST_RULES
    assert 0 < len(twins) < len(homes)
    assert all(len({device.entity for device in home.devices}) < len(home.devices) for home in twins)


def test_homes_use_fewer_relations_of_their_own_the_more_households_differ() -> None:
    spreads = []
    for specialisation in drift.SPECIALISATIONS:
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
    [text] = drift.section(results)
    assert "| 3 | 12 | 1 |" in text
    assert "−1.50" in text
    assert list(drift.section(Results())) == []
