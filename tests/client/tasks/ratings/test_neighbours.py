"""Ratings in closed form: sums, solution, predictions, export, and what a client refuses."""

from pathlib import Path

import numpy as np
import pytest
import torch

from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.export import SolvedRatings
from client.tasks.ratings.learner import RatingsLearner
from client.tasks.ratings.neighbours import predict
from common.arrays import Arrays
from common.config.parse import parse
from common.errors import DataError, WireError
from common.tasks.ratings import neighbours
from common.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import demo_products
from common.wire.sparse_rows import expand
from deploy.simulation.grid import simulate
from tests.support.closed_form import solve

RATERS = demo_raters(0, 60, 1)


def learners(**options: str) -> list[RatingsLearner]:
    """Return one learner for each rater."""
    run = parse({"task": "ratings", "method": "ridge", **options}).task_run(TASK, demo_products())
    return [RatingsLearner(run, Ratings((rater,), demo_products())) for rater in RATERS]


def solution() -> Arrays:
    """Return what the sums of all raters give."""
    return solve(TASK, neighbours.sizes(demo_products(), False), learners(), 3)


@pytest.mark.parametrize("raters", [60, 4])
def test_large_covariances_have_the_same_factors(raters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).standard_normal((90, raters))
    covariance = vectors @ vectors.T
    exact = neighbours._largest(covariance.copy(), 10)
    monkeypatch.setattr(neighbours, "MOST_EXACT", 0)
    for values, found in (exact, neighbours._largest(covariance, 10)):
        whole = (found * np.maximum(values, 0)) @ found.T
        assert values.shape == (10,)
        assert found.shape == (90, 10)
        np.testing.assert_allclose(whole, (exact[1] * np.maximum(exact[0], 0)) @ exact[1].T, atol=1e-6)


def test_sums_give_biases_factors_and_a_choice() -> None:
    solved = solution()
    rank, strength = solved[neighbours.CHOSEN].tolist()
    assert any((rank, strength) == pytest.approx(choice) for choice in solved[neighbours.CHOICES].tolist())
    assert neighbours.is_solved(solved)
    assert solved[neighbours.FACTORS].shape == (neighbours.LARGEST_RANK, len(demo_products().items))


def test_predictions_are_those_of_the_covariance() -> None:
    solved, train = solution(), learners()[0].splits[0].train
    options, (factors, strength) = learners()[0].options, neighbours.factors_of(solved)
    biases = solved[neighbours.BIASES].astype(float)
    mean = (train.values.sum() + 3 * 0.7) / (len(train) + 3)
    left = train.values - mean - biases[train.items]
    offset = left.sum() / (len(train) + 3)
    cov = factors @ factors.T
    inner = cov[np.ix_(train.items, train.items)] + strength * np.eye(len(train))
    expected = mean + offset + biases + cov[:, train.items] @ np.linalg.solve(inner, left - offset)
    found = predict(solved, train, np.arange(len(biases)), options)
    np.testing.assert_allclose(found, np.clip(expected, 0, 1), atol=1e-9)
    network = SolvedRatings(biases, factors, strength, options)
    exported = network(torch.from_numpy(train.items), torch.from_numpy(train.values))
    np.testing.assert_allclose(exported.numpy(), found, atol=1e-9)


def test_under_noise_a_client_sends_one_report_of_norm_one() -> None:
    client = learners(**{"privacy.unit": "client"})[0]
    solved = neighbours.sizes(demo_products(), True)
    sent = expand(client.statistics(solved), neighbours.template(solved))
    assert np.linalg.norm(sent[neighbours.REPORT]) == pytest.approx(1)
    done = neighbours.solve(solved, {neighbours.REPORT: sent[neighbours.REPORT]}, 0.0)
    assert client.evaluate({}, done, "test")[0]["rmse"] < 0.5


def test_a_run_solves_and_is_better_than_own_means(tmp_path: Path) -> None:
    (tmp_path / "products.json").write_text(demo_products().to_json(), "utf-8")
    options = {"task": "ratings", "method": "ridge", "catalogue": str(tmp_path / "products.json")}
    result = simulate(parse(options), Ratings(demo_raters(0, 100, 1), demo_products()), tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 3)
    assert result.metrics["rmse"] < result.metrics["rmse_local_mean"]


def test_raters_without_ratings_have_nothing_to_solve() -> None:
    with pytest.raises(DataError, match="no client of this run has a rating"):
        neighbours.solve(neighbours.sizes(demo_products(), False), {neighbours.ITEM_SUMS: np.zeros((240, 2))}, 0.0)


@pytest.mark.parametrize(
    "changed",
    [
        {neighbours.SIZES: np.array([3, 0, neighbours.MOST_ITEMS])},
        {neighbours.ITEMS: np.array([5, 1])},
        {neighbours.ITEMS: np.array([240])},
        {neighbours.BIASES: np.zeros(3, np.float32)},
        {neighbours.FACTORS: np.zeros((2, 3), np.float32)},
    ],
)
def test_sums_of_another_vocabulary_are_refused(changed: Arrays) -> None:
    start = neighbours.sizes(demo_products(), False)
    with pytest.raises(WireError):
        neighbours.check({**start, **changed}, demo_products(), noised=False)
