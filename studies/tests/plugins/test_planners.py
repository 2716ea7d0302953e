"""Planners of the studies: fixed arms, growing costs, and ADAP, which follows the loss."""

import math

import numpy as np
import pytest
from fedloom_planners.options import ADAP, ADPML, FedSGD, FixedArm, RandomArm
from fedloom_planners.server import AdaptiveNoise, count_decays, growing_costs
from hypothesis import given
from hypothesis import strategies as st

from server.planning.planner import Decision, Planner, RunBudget
from server.planning.registry import build_planner
from tests.server.planning.test_planner import costs_of

RNG = np.random.default_rng(0)


@given(st.floats(1e-4, 100), st.integers(2, 200), st.floats(1, 50))
def test_adpml_grows_by_a_constant_factor_and_spends_the_budget(total: float, rounds: int, growth: float) -> None:
    spent = np.array(costs_of(ADPML(growth=growth), RunBudget(total, rounds, 1), [0.0] * (rounds + 1)))
    assert len(spent) == rounds
    assert math.fsum(spent) == pytest.approx(total, rel=1e-12)
    assert spent[1:] / spent[:-1] == pytest.approx(np.full(rounds - 1, growth ** (1 / (rounds - 1))), rel=1e-6)
    assert growing_costs(RunBudget(total, 1, 1), growth) == pytest.approx([total])


def test_a_fixed_arm_is_taken_until_a_client_cannot_pay_it() -> None:
    budget = RunBudget(10.0, 10, 1)
    assert costs_of(FixedArm(arm=0), budget, [0.0] * 11) == pytest.approx([1.0] * 10)
    assert costs_of(FixedArm(arm=4), budget, [0.0] * 11) == pytest.approx([1.25] * 8)
    assert costs_of(FixedArm(arms=2, arm=1, t_min=0.3), budget, [0.0] * 11) == pytest.approx([10 / 3] * 3)
    assert costs_of(FixedArm(arms=3, arm=2, t_min=0.4), budget, [0.0] * 11) == pytest.approx([2.5] * 4)


def test_random_arms_are_drawn_uniformly_from_those_of_bgtplanner() -> None:
    planner, rng = build_planner(RandomArm(), RunBudget(100.0, 100, 1)), np.random.default_rng(0)
    decisions = [planner.decide(planner.start(), np.zeros(0), {"a": 100.0}, rng) for _ in range(500)]
    arms = [decision.arm for decision in decisions if isinstance(decision, Decision)]
    assert min(np.bincount(arms, minlength=5)) > 70
    costs = {decision.cost for decision in decisions if isinstance(decision, Decision)}
    assert sorted(costs) == pytest.approx([1.0, 1.0625, 1.125, 1.1875, 1.25])


def test_fedsgd_costs_nothing_and_needs_no_budget() -> None:
    assert costs_of(FedSGD(), RunBudget(0.0, 3, 1), [0.0] * 5) == [0, 0, 0]


def test_decays_are_disjoint_runs_of_falls() -> None:
    assert count_decays(np.array([1, 1, 1, 1, 1, -1, 1, 1, 0, 1, 1, 1.0]), 3) == 2
    assert count_decays(np.zeros(0), 3) == 0


@pytest.mark.parametrize(("power", "factor"), [(2, 0.95**-2), (1, 0.95**-1)])
def test_the_cost_of_less_noise_has_the_power_of_the_mechanism(power: int, factor: float) -> None:
    budget = RunBudget(10.0, 100, 1, 2 if power == 2 else 1)
    spent = costs_of(ADAP(), budget, [1.0, 1.0, 1.0, -1.0, -1.0])
    assert spent == pytest.approx([0.1, 0.1, 0.1, 0.1 * factor, 0.1 * factor])
    assert costs_of(ADAP(beta=1.0), budget, [1.0] * 4) == pytest.approx([0.1] * 4)


def test_adap_selects_the_most_expensive_affordable_arm_at_the_end() -> None:
    spent = costs_of(ADAP(beta=0.5, falls=1), RunBudget(10.0, 10, 1), [1.0] * 20)
    assert spent == pytest.approx([1, 4, 4, 1])  # 16 is due, the remaining budgets are 5 and 1


def test_the_clip_norm_follows_the_last_update_within_its_bounds() -> None:
    planner: Planner = AdaptiveNoise(ADAP(clip_factor=1.5, clip_floor=0.1), RunBudget(1.0, 10, 1))
    state, clips = planner.start(), []
    for norm in (0.4, 0.01, 5.0, 1.0):
        decision = planner.decide(state, np.zeros(0), {"a": 1.0}, RNG)
        assert isinstance(decision, Decision)
        clips.append(decision.clip)
        state = planner.observe(state, decision, 0.0, update_norm=norm)
    assert clips == pytest.approx([1.0, 0.6, 0.1, 1.0])
