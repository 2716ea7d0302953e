"""Plans that are fixed beforehand, and ADAP's that follows the loss."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.methods.planners import ADAP, ADPML, FedSGD, PlannerOptions, Uniform
from server.planning.adap import AdaptiveNoise, decays
from server.planning.planner import Budget, Decision, Planner, Stop
from server.planning.registry import build_planner
from server.planning.schedules import growing
from server.planning.state import State

RNG = np.random.default_rng(0)


def costs_of(options: PlannerOptions, budget: Budget, rewards: list[float]) -> list[float]:
    planner, left, spent = build_planner(options, budget), budget.total, []
    state: State = planner.start()
    for reward in rewards:
        decision = planner.decide(state, np.zeros(0), {"a": left}, RNG)
        if isinstance(decision, Stop):
            break
        assert decision.cost <= left
        spent.append(decision.cost)
        left -= decision.cost
        state = planner.observe(state, decision, reward)
    return spent


@given(st.floats(1e-4, 100), st.integers(1, 200))
def test_uniform_spends_the_whole_budget_in_even_parts(total: float, rounds: int) -> None:
    spent = costs_of(Uniform(), Budget(total, rounds, 1), [0.0] * (rounds + 1))
    assert spent == pytest.approx([total / rounds] * rounds, rel=1e-9)
    assert math.fsum(spent) == pytest.approx(total, rel=1e-12)


@given(st.floats(1e-4, 100), st.integers(2, 200), st.floats(1, 50))
def test_adpml_grows_by_one_rate_and_ends_with_the_budget(total: float, rounds: int, growth: float) -> None:
    spent = np.array(costs_of(ADPML(growth=growth), Budget(total, rounds, 1), [0.0] * (rounds + 1)))
    assert len(spent) == rounds
    assert math.fsum(spent) == pytest.approx(total, rel=1e-12)
    assert spent[1:] / spent[:-1] == pytest.approx(np.full(rounds - 1, growth ** (1 / (rounds - 1))), rel=1e-6)
    assert growing(Budget(total, 1, 1), growth) == pytest.approx([total])


def test_fedsgd_costs_nothing_and_needs_no_budget() -> None:
    assert costs_of(FedSGD(), Budget(0.0, 3, 1), [0.0] * 5) == [0, 0, 0]


def test_every_third_fall_in_a_row_counts() -> None:
    assert decays(np.array([1, 1, 1, 1, 1, -1, 1, 1, 0, 1, 1, 1.0]), 3) == 2
    assert decays(np.zeros(0), 3) == 0


@pytest.mark.parametrize(("power", "factor"), [(2, 0.95**-2), (1, 0.95**-1)])
def test_less_noise_costs_by_its_square_or_as_it_is(power: int, factor: float) -> None:
    budget = Budget(10.0, 100, 1, 2 if power == 2 else 1)
    spent = costs_of(ADAP(), budget, [1.0, 1.0, 1.0, -1.0, -1.0])
    assert spent == pytest.approx([0.1, 0.1, 0.1, 0.1 * factor, 0.1 * factor])
    assert costs_of(ADAP(beta=1.0), budget, [1.0] * 4) == pytest.approx([0.1] * 4)


def test_towards_the_end_adap_takes_the_least_noise_that_can_be_paid() -> None:
    spent = costs_of(ADAP(beta=0.5, falls=1), Budget(10.0, 10, 1), [1.0] * 20)
    assert spent == pytest.approx([1, 4, 4, 1])  # 16 is due, 5 are left, then 1


def test_the_clip_follows_the_last_update_within_its_bounds() -> None:
    planner: Planner = AdaptiveNoise(ADAP(clip_factor=1.5, clip_floor=0.1), Budget(1.0, 10, 1))
    state, clips = planner.start(), []
    for norm in (0.4, 0.01, 5.0, 1.0):
        decision = planner.decide(state, np.zeros(0), {"a": 1.0}, RNG)
        assert isinstance(decision, Decision)
        clips.append(decision.clip)
        state = planner.observe(state, decision, 0.0, update_norm=norm)
    assert clips == pytest.approx([1.0, 0.6, 0.1, 1.0])
