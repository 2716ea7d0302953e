"""Baselines against values by hand and by least squares."""

import numpy as np
import pytest

from client.tasks.ratings.data.raters import Rated, Rater, SplitRater
from common.tasks.ratings.options import RatingsOptions
from studies.ratings.baselines import SHRINK, Flat, baselines_of, biases, item_means
from studies.ratings.experiments import BASELINES, OWN

NOTHING = Rated(np.zeros(0, np.int64), np.zeros(0))


def _split(train: dict[int, float], test: dict[int, float]) -> SplitRater:
    def rated(ratings: dict[int, float]) -> Rated:
        return Rated(np.array(list(ratings), np.int64), np.array(list(ratings.values())))

    return SplitRater(Rater("", np.zeros(0, np.int64), np.zeros(0)), rated(train), NOTHING, rated(test))


def test_baselines_by_hand() -> None:
    splits = [_split({0: 1.0, 1: 0.6}, {2: 0.8}), _split({0: 0.2}, {1: 0.4}), _split({}, {})]
    found = baselines_of(splits, 3, RatingsOptions(prior=0.7, prior_weight=3))
    assert found["always-half"]["rmse"] == pytest.approx(np.sqrt((0.3**2 + 0.1**2) / 2))
    assert found["global-mean"]["mae"] == pytest.approx(0.2)
    first, second = (1.6 + 2.1) / 5, (0.2 + 2.1) / 4
    assert found[OWN]["mae"] == pytest.approx((abs(first - 0.8) + abs(second - 0.4)) / 2)
    assert found["all-positive"] == {"f1": pytest.approx(2 / 3)}
    assert found.keys() == BASELINES.keys()


def test_item_means_shrink_to_the_global_mean() -> None:
    trained = Flat(np.array([0, 1, 1]), np.array([0, 0, 2]), np.array([0.2, 0.4, 0.9]))
    np.testing.assert_allclose(
        item_means(trained, 3), [(0.6 + SHRINK * 0.5) / (2 + SHRINK), 0.5, (0.9 + SHRINK * 0.5) / 6]
    )


def test_biases_solve_the_ridge_regression() -> None:
    """Dense least squares with SHRINK on the diagonal; alternating sweeps come close to its minimum."""
    rng = np.random.default_rng(0)
    trained = Flat(rng.integers(6, size=60), rng.integers(4, size=60), rng.uniform(size=60))
    design = np.hstack([np.eye(6)[trained.users], np.eye(4)[trained.items]])
    residual = trained.values - trained.values.mean()
    exact = np.linalg.solve(design.T @ design + SHRINK * np.eye(10), design.T @ residual)
    np.testing.assert_allclose(np.concatenate(biases(trained, 6, 4)), exact, atol=1e-3)
