"""Cohorts: stacked steps stay small, and results do not depend on the number of clients in one."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from client.data.read import read_all
from client.tasks.learner import Learner
from client.tasks.rules.learner import RulesLearner
from client.tasks.sessions.data.visitors import Visitor, as_clicks
from client.training import participant as cohort_size
from client.training.participant import STEP_BYTES, HasWideRows, split_cohort
from client.training.stacks import stack
from common.arrays import Arrays
from common.config.parse import parse
from common.tasks.sessions.vocabulary import Items
from deploy.simulation import blocks as population
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from tests.support.build import learner_of
from tests.support.toys import CATALOGUE, configured, toy_homes

MANY_ITEMS = Items(items=tuple(f"item {k}" for k in range(50_000)))


def visitors(loss: str = "full") -> list[Learner]:
    """Return clients of 1 to 40 examples, ascending, with as many scores an example as there are items."""
    options = {"method": "fedga", "task": "sessions", "tasks.sessions.hidden": 2, "tasks.sessions.loss": loss}
    clicks = [as_clicks([0] * (k + 2)) for k in range(40)]
    config = parse({**options, "tasks.sessions.max-length": 50, "tasks.sessions.test-share": 0.01})
    return [learner_of(config, MANY_ITEMS, [Visitor(f"v{k}", (one,), ())]) for k, one in enumerate(clicks)]


def split(learners: list[Learner], together: int) -> list[list[Learner]]:
    cohorts = list(split_cohort(learners, lambda learner: learner, together))
    assert [one for cohort in cohorts for one in cohort] == learners, "none is lost or moved"
    return cohorts


def step_bytes(cohort: list[Learner]) -> int:
    return len(cohort) * cohort[-1].size * 4 * len(MANY_ITEMS.items)


def test_a_stacked_step_that_scores_all_items_stays_small() -> None:
    cohorts = split(visitors(), 32)
    sizes = [len(cohort) for cohort in cohorts]
    assert (sizes[0], sizes[-2]) == (9, 2), "nine clients of 9 examples, two of 39"
    assert all(step_bytes(cohort) <= STEP_BYTES for cohort in cohorts)
    nexts = pairwise(cohorts)
    assert all(step_bytes([*cohort, following[0]]) > STEP_BYTES for cohort, following in nexts), "none is cut early"


def test_a_client_that_is_too_large_for_a_cohort_trains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cohort_size, "STEP_BYTES", 1)
    assert [len(cohort) for cohort in split(visitors(), 32)] == [1] * 40


def test_the_number_of_clients_alone_limits_other_cohorts() -> None:
    homes: list[Learner] = [learner_of(configured("fedavg"), CATALOGUE, [home]) for home in toy_homes(7)]
    assert isinstance(homes[0], RulesLearner)
    assert not isinstance(homes[0], HasWideRows)
    for learners in (homes, visitors("sampled")[:7]):
        assert [len(cohort) for cohort in split(learners, 3)] == [3, 3, 1]
    assert [len(cohort) for cohort in split(visitors()[:5], 1)] == [1] * 5
    assert split([], 32) == []


@pytest.mark.parametrize("summed", [False, True])
def test_smaller_cohorts_train_the_same_model(summed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0 if summed else 10**12)
    options = {"run-id": "toy", "task": "sessions", "method": "fedga", "rounds": 2, "privacy.unit": "none"}

    def trained(limit: int, together: int) -> tuple[str, Arrays]:
        monkeypatch.setattr(cohort_size, "STEP_BYTES", limit)
        folder = tmp_path / f"{limit}-{together}"
        result = simulate(parse(options), read_all("sessions", "demo:0-6"), folder, together=together)
        return result.model_sha256, RunDirectory(folder, "toy").load_model()[0]

    whole, in_threes, in_twos = trained(STEP_BYTES, 6), trained(1, 3), trained(1, 2)
    assert in_threes[0] == in_twos[0], "each client trains alone"
    for name, a in whole[1].items():
        np.testing.assert_allclose(in_twos[1][name], a, rtol=1e-3, atol=1e-5)


def test_arrays_of_several_shapes_are_stacked_in_order_with_zeros_behind() -> None:
    members = [torch.full((rows, columns), float(k + 1)) for k, (rows, columns) in enumerate([(2, 1), (1, 3), (2, 1)])]
    stacked = stack([{"x": member} for member in members])["x"]
    assert stacked.shape == (3, 2, 3)
    for whole, member in zip(stacked, members, strict=True):
        expected = torch.zeros(2, 3)
        expected[: member.shape[0], : member.shape[1]] = member
        assert whole.equal(expected)
