"""The default model's half on the client: own mean, report, standing, prediction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import Ridge

from client.tasks.ratings.baseline import expecting, own_mean, predicted, report, standing, unit
from client.tasks.ratings.data.split import Rated
from common.privacy.options import MechanismName, PrivacyOptions
from common.privacy.zcdp import rho_of
from common.tasks.ratings.options import RatingsOptions

OPTIONS = RatingsOptions(prior=0.7, prior_weight=3, offset=0.1, offset_weight=0, slope=0.05, slope_weight=10)
NOTHING = Rated(np.zeros(0, np.int64), np.zeros(0))
ANN = Rated(np.array([4, 1, 2]), np.array([1.0, 0.2, 0.6]))


def test_the_own_mean_is_drawn_to_the_prior() -> None:
    """(1 + .2 + .6 + 3·.7)/6."""
    assert own_mean(ANN, OPTIONS) == pytest.approx(0.65)
    assert own_mean(NOTHING, OPTIONS) == pytest.approx(0.7)


def test_a_report_by_hand() -> None:
    """.1 + r − .65 on the rated products, of norm 1; popularity is what is left of the offset."""
    x = np.array([0, -0.35, 0.05, 0, 0.45])
    np.testing.assert_allclose(report(ANN, 5, OPTIONS), x / np.sqrt(0.35**2 + 0.05**2 + 0.45**2))
    assert not report(NOTHING, 5, OPTIONS).any()
    exact = Rated(np.array([0]), np.array([0.7]))
    assert not report(exact, 2, RatingsOptions(offset=0)).any(), "nothing to say, not a division by zero"


def test_few_ratings_have_a_small_offset() -> None:
    """.1·3/(3 + 9) + r − .65."""
    x = np.array([0, -0.425, -0.025, 0, 0.375])
    few = OPTIONS.model_copy(update={"offset_weight": 9.0})
    np.testing.assert_allclose(report(ANN, 5, few), x / np.linalg.norm(x))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_everybodys_report_has_norm_one(values: list[float]) -> None:
    x = report(Rated(np.arange(len(values)), np.array(values)), 30, RatingsOptions(offset=0.05))
    assert np.linalg.norm(x) == pytest.approx(1) or not x.any()
    assert not x[len(values) :].any()


def test_standing_is_normal_scores() -> None:
    """Blom's plain form: Φ⁻¹((k − ½)/n); equals share their mean rank."""
    expected = norm.ppf([0.1, 0.9, 0.3, 0.6, 0.6])
    np.testing.assert_allclose(standing(np.array([-3.0, 1e9, 0.0, 2.0, 2.0])), expected)
    assert not standing(np.zeros(6)).any(), "before training every prediction is the own mean"
    scores = np.random.default_rng(0).normal(size=2000)
    np.testing.assert_allclose(standing(7 * scores - 3), standing(scores))
    assert standing(scores).std() == pytest.approx(1, abs=0.01)


def test_a_prediction_is_the_own_mean_and_a_ridge_regression_of_the_own_ratings() -> None:
    """scikit-learn's Ridge shrinks to 0, so it is asked for the difference to the public slope."""
    rng = np.random.default_rng(1)
    z, train = rng.normal(size=40), Rated(rng.permutation(40)[:25], rng.uniform(0.3, 0.9, 25))
    m = own_mean(train, OPTIONS)
    away = z - z[train.items].sum() / 28
    ridge = Ridge(alpha=10, fit_intercept=False)
    ridge.fit(away[train.items, None], train.values - m - 0.05 * away[train.items])
    expected = m + (0.05 + ridge.coef_[0]) * away
    np.testing.assert_allclose(predicted(z, train, np.arange(40), OPTIONS), np.clip(expected, 0, 1))


def test_nobody_in_particular_is_predicted_by_the_public_slope() -> None:
    z = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(predicted(z, NOTHING, np.array([2, 0]), OPTIONS), [0.7 + 0.1, 0.7 - 0.05])


def test_less_is_expected_of_noisier_scores() -> None:
    """At σ = σ₀ a slope of .05/√2, worth 2 · 10 ratings; Gaussian noise is the same however many rounds share ρ."""
    gaussian = PrivacyOptions(unit="client", epsilon=10, clip=0.3)
    sigma = 2 / np.sqrt(2 * rho_of(10, 1e-5))
    options = OPTIONS.model_copy(update={"slope_noise": sigma})
    for rounds in (1, 20):
        expected = expecting(options, gaussian, rounds, 100)
        assert expected.slope == pytest.approx(0.05 / np.sqrt(2))
        assert expected.slope_weight == pytest.approx(20)
    assert expecting(options, PrivacyOptions(), 1, 100) == options, "without noise as it is"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "privunit"])
def test_the_slope_grows_with_epsilon(mechanism: MechanismName) -> None:
    budgets = [PrivacyOptions(unit="client", mechanism=mechanism, epsilon=epsilon) for epsilon in (0.1, 1, 10, 100)]
    slopes = [expecting(OPTIONS, privacy, 1, 1000).slope for privacy in budgets]
    assert slopes == sorted(slopes)
    assert 0 < slopes[0] < 0.1 * slopes[-1] < slopes[-1] <= OPTIONS.slope


def test_laplace_noise_goes_by_a_report_of_typical_length() -> None:
    """Scale 2/ε, deviation √2 times that, over a norm of 1/√40; T rounds of ε/T leave √T times as much."""
    laplace = PrivacyOptions(unit="client", mechanism="laplace", epsilon=10)
    for rounds in (1, 9):
        sigma = np.sqrt(2) * 0.2 * np.sqrt(40) * np.sqrt(rounds)
        options = OPTIONS.model_copy(update={"slope_noise": sigma})
        assert expecting(options, laplace, rounds, 100).slope_weight == pytest.approx(20)


def test_predictions_stay_on_the_scale() -> None:
    steep = RatingsOptions(slope=5.0)
    assert predicted(np.array([-1.0, 1.0]), NOTHING, np.array([0, 1]), steep).tolist() == [0, 1]


def test_a_direction() -> None:
    assert unit(np.array([3.0, 4.0])).tolist() == [0.6, 0.8]
    assert unit(np.zeros(2)).tolist() == [0, 0]
