"""Noise of one client's own: integers within the norm, noise as large as the cost needs and hardly larger."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, laplace, norm

from common.arrays import Floats
from common.errors import RefusedError
from common.privacy import grid
from common.privacy.grid import release_gaussian, release_laplace, steps_of
from common.privacy.mechanisms import Gaussian, Laplace
from common.secure.noise import DiscreteGaussian

CLIP = 1.5
Release = Callable[[Floats, float, float, np.random.Generator], Floats]


def noiseless(release: Release, vector: Floats, spread: float, monkeypatch: pytest.MonkeyPatch) -> Floats:
    """Return a release whose noise is 0, in steps of the grid."""
    for name in ("discrete_gaussian", "discrete_laplace"):
        monkeypatch.setattr(grid, name, lambda scale, size, stream: np.zeros(size, np.int64))
    found: Floats = release(vector, CLIP, spread, np.random.default_rng(0))
    return found / CLIP * steps_of(spread / CLIP, vector.size)


@pytest.mark.parametrize("size", [1, 50, 40_000])
@pytest.mark.parametrize("spread", [1e-3, 0.7, 3e3])
@pytest.mark.parametrize(("release", "order"), [(release_gaussian, 2), (release_laplace, 1)])
def test_rounded_numbers_are_integers_within_the_norm(
    release: Release, order: int, spread: float, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = np.random.default_rng(1).normal(size=size)
    vector *= CLIP / np.linalg.norm(vector, order)
    steps = noiseless(release, vector, spread, monkeypatch)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert np.linalg.norm(np.rint(steps), order) <= steps_of(spread / CLIP, size)
    if spread < 1:
        assert np.linalg.norm(steps, order) > 0.97 * steps_of(spread / CLIP, size), "and hardly shorter"


@given(st.floats(1e-6, 1e4), st.integers(1, 10**6))
def test_noise_of_a_step_is_as_large_as_its_cost_needs(rho: float, size: int) -> None:
    deviation = Gaussian(rho, CLIP).noise
    bound = steps_of(deviation / CLIP, size)
    scales: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            grid, "discrete_gaussian", lambda scale, size, stream: scales.append(scale) or np.zeros(1, np.int64)
        )
        release_gaussian(np.zeros(1), CLIP, deviation, np.random.default_rng(0))
    cost = DiscreteGaussian(steps_of(deviation / CLIP, 1), "signed", scales[0]).privacy_cost.gdp
    assert 0.97 * rho < cost <= rho
    assert bound**2 >= 16 * size
    assert bound <= grid.MOST_STEPS


@given(st.floats(1e-2, 1e3))
def test_laplace_noise_is_no_smaller_than_pure_epsilon_needs(epsilon: float) -> None:
    spread, scales = Laplace(epsilon, CLIP).noise, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            grid, "discrete_laplace", lambda scale, size, stream: scales.append(scale) or np.zeros(1, np.int64)
        )
        release_laplace(np.zeros(1), CLIP, spread, np.random.default_rng(0))
    steps = 2 * steps_of(spread / CLIP, 1)
    assert steps / scales[0] <= epsilon
    assert scales[0] <= steps / epsilon + 2


@pytest.mark.parametrize(
    ("release", "cdf"), [(release_gaussian, norm(scale=0.4).cdf), (release_laplace, laplace(scale=0.4).cdf)]
)
def test_the_noise_has_the_distribution_of_real_numbers(release: Release, cdf: Callable[[Floats], Floats]) -> None:
    vector = np.zeros(100_000)
    vector[:2] = 0.5
    found: Floats = release(vector, CLIP, 0.4, np.random.default_rng(2))
    assert kstest(found[2:], cdf).pvalue > 1e-3


@pytest.mark.parametrize("release", [release_gaussian, release_laplace])
def test_noise_beyond_the_grid_is_refused(release: Release) -> None:
    with pytest.raises(RefusedError, match="cannot be drawn"):
        release(np.zeros(3), CLIP, 1e6, np.random.default_rng(0))


def test_a_generator_gives_one_release() -> None:
    first, again, other = (Gaussian(0.5, CLIP).release(np.zeros(9), np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def test_a_hundred_thousand_numbers_take_less_than_half_a_second() -> None:
    rng, vector, seconds = np.random.default_rng(0), np.full(100_000, 1e-3), []
    for mechanism in (Gaussian(0.5, CLIP), Laplace(0.5, CLIP)):
        start = time.process_time()
        mechanism.release(vector, rng)
        seconds.append(time.process_time() - start)
    assert max(seconds) < 0.5
