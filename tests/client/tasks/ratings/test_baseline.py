"""Private part of the default ratings model: own mean, report, normal scores, prediction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import Ridge

from client.tasks.ratings.baseline import adjust_to_noise, normal_scores, normalize, own_mean, predict, report
from client.tasks.ratings.data.raters import Rated
from common.privacy.accounts import gdp_of
from common.privacy.options import MechanismName, PrivacyOptions
from common.tasks.ratings.options import RatingsOptions

OPTIONS = RatingsOptions(prior=0.7, prior_weight=3, offset=0.1, offset_weight=0, slope=0.05, slope_weight=10)
NOTHING = Rated(np.zeros(0, np.int64), np.zeros(0))
ANN = Rated(np.array([4, 1, 2]), np.array([1.0, 0.2, 0.6]))


def test_the_own_mean_is_drawn_to_the_prior() -> None:
    """Check (1 + .2 + .6 + 3·.7)/6."""
    assert own_mean(ANN, OPTIONS) == pytest.approx(0.65)
    assert own_mean(NOTHING, OPTIONS) == pytest.approx(0.7)


def test_a_report_by_hand() -> None:
    """Check .1 + r − .65 on the rated products, scaled to norm 1."""
    x = np.array([0, -0.35, 0.05, 0, 0.45])
    np.testing.assert_allclose(report(ANN, 5, OPTIONS), x / np.sqrt(0.35**2 + 0.05**2 + 0.45**2))
    assert not report(NOTHING, 5, OPTIONS).any()
    exact = Rated(np.array([0]), np.array([0.7]))
    assert not report(exact, 2, RatingsOptions(offset=0)).any(), "a zero vector, not a division by zero"


def test_few_ratings_have_a_small_offset() -> None:
    """Check .1·3/(3 + 9) + r − .65."""
    x = np.array([0, -0.425, -0.025, 0, 0.375])
    few = OPTIONS.model_copy(update={"offset_weight": 9.0})
    np.testing.assert_allclose(report(ANN, 5, few), x / np.linalg.norm(x))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_every_report_has_norm_one(values: list[float]) -> None:
    x = report(Rated(np.arange(len(values)), np.array(values)), 30, RatingsOptions(offset=0.05))
    assert np.linalg.norm(x) == pytest.approx(1) or not x.any()
    assert not x[len(values) :].any()


def test_normal_scores_by_hand() -> None:
    """Check Φ⁻¹((k − ½)/n); ties share their mean rank."""
    expected = norm.ppf([0.1, 0.9, 0.3, 0.6, 0.6])
    np.testing.assert_allclose(normal_scores(np.array([-3.0, 1e9, 0.0, 2.0, 2.0])), expected)
    assert not normal_scores(np.zeros(6)).any(), "before training every prediction is the own mean"
    scores = np.random.default_rng(0).normal(size=2000)
    np.testing.assert_allclose(normal_scores(7 * scores - 3), normal_scores(scores))
    assert normal_scores(scores).std() == pytest.approx(1, abs=0.01)


def test_a_prediction_is_the_own_mean_and_a_ridge_regression_of_the_own_ratings() -> None:
    """Compare with scikit-learn's Ridge, which shrinks to 0, on the difference to the public slope."""
    rng = np.random.default_rng(1)
    z, train = rng.normal(size=40), Rated(rng.permutation(40)[:25], rng.uniform(0.3, 0.9, 25))
    m = own_mean(train, OPTIONS)
    away = z - z[train.items].sum() / 28
    ridge = Ridge(alpha=10, fit_intercept=False)
    ridge.fit(away[train.items, None], train.values - m - 0.05 * away[train.items])
    expected = m + (0.05 + ridge.coef_[0]) * away
    np.testing.assert_allclose(predict(z, train, np.arange(40), OPTIONS), np.clip(expected, 0, 1))


def test_a_rater_without_ratings_is_predicted_by_the_public_slope() -> None:
    z = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(predict(z, NOTHING, np.array([2, 0]), OPTIONS), [0.7 + 0.1, 0.7 - 0.05])


def test_the_slope_shrinks_with_noise() -> None:
    """Check a slope of .05/√2 and a weight of 2 · 10 ratings at σ = σ₀.

    Gaussian noise does not depend on the number of rounds that share ρ.
    """
    gaussian = PrivacyOptions(unit="client", epsilon=10, clip=0.3)
    sigma = 2 / np.sqrt(2 * gdp_of(10, 1e-5))
    options = OPTIONS.model_copy(update={"slope_noise": sigma})
    for rounds in (1, 20):
        expected = adjust_to_noise(options, gaussian, rounds, 100)
        assert expected.slope == pytest.approx(0.05 / np.sqrt(2))
        assert expected.slope_weight == pytest.approx(20)
    assert adjust_to_noise(options, PrivacyOptions(), 1, 100) == options, "without noise as it is"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "privunit"])
def test_the_slope_grows_with_epsilon(mechanism: MechanismName) -> None:
    budgets = [PrivacyOptions(unit="client", mechanism=mechanism, epsilon=epsilon) for epsilon in (0.1, 1, 10, 100)]
    slopes = [adjust_to_noise(OPTIONS, privacy, 1, 1000).slope for privacy in budgets]
    assert slopes == sorted(slopes)
    assert 0 < slopes[0] < 0.1 * slopes[-1] < slopes[-1] <= OPTIONS.slope


def test_noise_of_helpers_counts_as_the_share_of_one_of_many_clients() -> None:
    """Check the slope under a √(2/1000) of the noise that each client would add itself."""
    helpers = PrivacyOptions(unit="client", epsilon=10, trust="helpers")
    sigma = np.sqrt(2 / 1000) * 2 / np.sqrt(2 * gdp_of(10, 1e-5))
    options = OPTIONS.model_copy(update={"slope_noise": sigma})
    for rounds in (1, 20):
        assert adjust_to_noise(options, helpers, rounds, 100).slope == pytest.approx(0.05 / np.sqrt(2), rel=1e-3)


def test_laplace_noise_is_that_of_a_report_of_typical_length() -> None:
    """Check scale 2/ε, deviation √2 times that, norm 1/√40; T rounds of ε/T give √T times the noise."""
    laplace = PrivacyOptions(unit="client", mechanism="laplace", epsilon=10)
    for rounds in (1, 9):
        sigma = np.sqrt(2) * 0.2 * np.sqrt(40) * np.sqrt(rounds)
        options = OPTIONS.model_copy(update={"slope_noise": sigma})
        assert adjust_to_noise(options, laplace, rounds, 100).slope_weight == pytest.approx(20)


def test_predictions_stay_on_the_scale() -> None:
    steep = RatingsOptions(slope=5.0)
    assert predict(np.array([-1.0, 1.0]), NOTHING, np.array([0, 1]), steep).tolist() == [0, 1]


def test_a_direction() -> None:
    assert normalize(np.array([3.0, 4.0])).tolist() == [0.6, 0.8]
    assert normalize(np.zeros(2)).tolist() == [0, 0]
