"""Update rules of v: numbers by hand, and the requirements of algorithms.md §2.10 on C-SME."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.arrays import Arrays, scale
from server.aggregation.optimizers import OptimizerState, Rule, adaptive, effective_rates, momentum, second_moment

RULES: tuple[Rule, ...] = get_args(Rule)
C_SME: tuple[Rule, ...] = ("saturated", "ramp", "quadratic")
NUMBERS = st.floats(2.0**-66, 2.0**66, width=32)
BETAS = st.floats(0, 0.999)

V = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 1.0])
SQUARE = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
# β₂ = 0.9, so v_t = v − 0.1·Δ'²·h(V), and h at V = 0.5, 1, 1.5, 2, 3 is by the table of algorithms.md §2.3:
GOLDEN: dict[Rule, list[float]] = {
    "saturated": [0.55, 1.0, 1.45, 1.9, 2.9, 1.0],  # h = −.5, 0, .5, 1, 1; nothing moved: v stays
    "ramp": [0.6, 1.1, 1.5, 1.9, 2.9, 1.0],  # h = −1, −1, 0, 1, 1
    "quadratic": [0.55, 1.0, 1.475, 1.9, 2.9, 1.0],  # h = −.5, 0, .25, 1, 1
    "adam": [0.55, 1.0, 1.45, 1.9, 2.8, 0.9],  # h = V − 1 = −.5, 0, .5, 1, 2; nothing moved: v decays by β₂
    "yogi": [0.6, 1.0, 1.4, 1.9, 2.9, 1.0],  # h = sign(V − 1) = −1, 0, 1, 1, 1
    "adagrad": [1.5, 2.0, 2.5, 3.0, 4.0, 1.0],  # v + Δ'²
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", RULES)
def test_by_hand(rule: Rule, dtype: type) -> None:
    v = second_moment(rule, V.astype(dtype), SQUARE.astype(dtype), 0.9)
    assert v.dtype == dtype
    np.testing.assert_allclose(v, GOLDEN[rule], rtol=1e-6)


@pytest.mark.parametrize("rule", C_SME)
@given(v=NUMBERS, square=NUMBERS | st.just(0.0), beta2=BETAS)
def test_v_stays_above_half_of_the_v_of_adam(rule: Rule, v: float, square: float, beta2: float) -> None:
    """v_t ≥ ((1+β₂)/2)·v_{t−1} > 0 in float32; Adam may leave β₂·v_{t−1}."""
    after = float(second_moment(rule, np.array([v], np.float32), np.array([square], np.float32), beta2)[0])
    assert after > 0
    assert after >= (1 + beta2) / 2 * v * (1 - 1e-6)


@given(v=NUMBERS, square=NUMBERS, beta2=BETAS)
def test_saturated_equals_adam_up_to_2_and_yogi_beyond(v: float, square: float, beta2: float) -> None:
    known: Rule = "adam" if v <= 2 * square else "yogi"
    ours = second_moment("saturated", np.array([v]), np.array([square]), beta2)
    assert ours == pytest.approx(second_moment(known, np.array([v]), np.array([square]), beta2), rel=1e-12)


@pytest.mark.parametrize("rule", C_SME)
@pytest.mark.parametrize("edge", [1.0, 2.0])
@given(square=NUMBERS, beta2=BETAS)
def test_the_cases_meet_where_they_change(rule: Rule, edge: float, square: float, beta2: float) -> None:
    left, at, right = second_moment(rule, edge * square * np.array([1 - 1e-9, 1, 1 + 1e-9]), np.full(3, square), beta2)
    assert (left, right) == (pytest.approx(at, rel=1e-8), pytest.approx(at, rel=1e-8))


@pytest.mark.parametrize("rule", [*C_SME, "yogi", "adagrad"])
@given(v=NUMBERS | st.just(0.0), beta2=BETAS)
def test_an_unchanged_parameter_keeps_its_v(rule: Rule, v: float, beta2: float) -> None:
    """Also 0/0: no v yet and nothing moved."""
    with np.errstate(all="raise"):
        after = second_moment(rule, np.array([v], np.float32), np.zeros(1, np.float32), beta2)
    assert after[0] == np.float32(v)


@pytest.mark.parametrize("rule", ["saturated", "adam"])
@pytest.mark.parametrize("start", [1e-3, 30.0])
def test_v_converges_to_a_constant_magnitude_which_bounds_the_step(rule: Rule, start: float) -> None:
    """Δ' ≡ c ⇒ v → c², and the step tends to m/(c + τ), at most 1 since |m| ≤ c; from 30, at 0.4 a round, within 100 rounds."""
    c, tau, memory = 2.0, 0.1, {"v": {"w": np.full(2, start)}}
    magnitude, update = {"w": np.full(2, c)}, {"w": np.array([c, 0.5])}
    for _ in range(400):
        step, memory = adaptive(memory, update, rule, magnitude, beta1=0.9, beta2=0.9, tau=tau)
    assert memory["v"]["w"] == pytest.approx([c**2, c**2])
    assert step["w"] == pytest.approx([c / (c + tau), 0.5 / (c + tau)])
    assert np.all(np.abs(step["w"]) <= 1)


def test_ramp_settles_above_the_magnitude() -> None:
    """Its h is zero at V = 1.5: why `saturated` is the default reading."""
    v = np.array([0.1])
    for _ in range(400):
        v = second_moment("ramp", v, np.array([4.0]), 0.9)
    assert v == pytest.approx([6.0])


def test_a_separate_magnitude_enters_v_alone() -> None:
    """The signed mean gives the direction, Δ' the denominator: m = 0.1·0.5 = 0.05, v = 0.99·0.1² + 0.01·3² = 0.0999."""
    step, memory = adaptive({}, {"w": np.array([0.5])}, "adam", {"w": np.array([3.0])}, beta1=0.9, beta2=0.99, tau=0.1)
    assert memory["m"]["w"] == pytest.approx([0.05])
    assert memory["v"]["w"] == pytest.approx([0.0999])
    assert step["w"] == pytest.approx([0.05 / (0.0999**0.5 + 0.1)])


@pytest.mark.parametrize("rule", ["saturated", "yogi"])
def test_a_large_floor_is_fedavgm(rule: Rule) -> None:
    """With τ above all updates and v₀ = τ² the denominator is 2τ: η/2τ·m is FedAvgM of ηₛ = (1−β₁)η/2τ.

    Under `adam` v itself decays by β₂ a round, and the rate creeps from η/2τ to η/τ.
    """
    rng, tau, eta, beta = np.random.default_rng(0), 1e6, 1e6, 0.9
    ours: OptimizerState = {}
    theirs: OptimizerState = {}
    for _ in range(20):
        update: Arrays = {"w": rng.normal(size=5)}
        step, ours = adaptive(ours, update, rule, beta1=beta, beta2=0.99, tau=tau)
        m, theirs = momentum(theirs, update, beta)
        np.testing.assert_allclose(scale(step, eta)["w"], scale(m, (1 - beta) * eta / (2 * tau))["w"], rtol=1e-9)


def test_rates_by_hand() -> None:
    """√v = 0, 1, …, 100 over two arrays, so η/(√v + τ) at its 5 % is 2/(95 + 1), at its median 2/(50 + 1)."""
    root = np.arange(101.0)
    rates = effective_rates({"a": np.square(root[:40]).reshape(4, 10), "b": np.square(root[40:])}, eta=2.0, tau=1.0)
    expected = {"rate_p5": 2 / 96, "rate_p25": 2 / 76, "rate_p50": 2 / 51, "rate_p75": 2 / 26, "rate_p95": 2 / 6}
    assert rates == pytest.approx(expected)
    assert effective_rates({}, 1.0, 1.0) == effective_rates({"w": np.empty((0, 3))}, 1.0, 1.0) == {}
