"""Fixed schedules."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.methods.planners import PLANNERS, PlannerOptions, Uniform
from server.clients.roster import cohort
from server.planning.planner import Decision, RunBudget, Stop
from server.planning.registry import build_planner
from server.planning.state import PlannerState

RNG = np.random.default_rng(0)
EVEN = ("uniform", "adpml", "adap")
"""Planners that spend most of the budget without rewards; some are of other packages."""


def costs_of(options: PlannerOptions, budget: RunBudget, rewards: list[float]) -> list[float]:
    planner, left, spent = build_planner(options, budget), budget.total, []
    state: PlannerState = planner.start()
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
def test_uniform_spends_the_whole_budget_evenly(total: float, rounds: int) -> None:
    spent = costs_of(Uniform(), RunBudget(total, rounds, 1), [0.0] * (rounds + 1))
    assert spent == pytest.approx([total / rounds] * rounds, rel=1e-9)
    assert math.fsum(spent) == pytest.approx(total, rel=1e-12)


def test_uniform_ends_after_the_rounds_that_share_the_budget() -> None:
    spent = costs_of(Uniform(rounds=3), RunBudget(6.0, 10, 1), [0.0] * 11)
    assert spent == pytest.approx([2.0, 2.0, 2.0])
    assert costs_of(Uniform(rounds=30), RunBudget(6.0, 3, 1), [0.0] * 11) == pytest.approx([2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("budget", "participations"),
    [
        (RunBudget(1.0, 100, 1), 100),
        (RunBudget(1.0, 100, 1, cohort=0.1), 16),
        (RunBudget(1.0, 3, 1, cohort=0.5), 3),
        (RunBudget(1.0, 100, 1, cohort=0.1, planned=40), 40),
        (RunBudget(1.0, 100, 1, planned=400), 100),
    ],
)
def test_participations_are_two_deviations_above_the_mean(budget: RunBudget, participations: int) -> None:
    assert budget.participations == participations


@pytest.mark.parametrize("name", [name for name in EVEN if name in PLANNERS])
def test_a_tenth_of_the_clients_a_round_spends_most_of_each_budget(name: str) -> None:
    """100 rounds of cohorts that are drawn among 100 clients who can pay; an even split over all rounds spends a tenth."""
    names = [f"client-{k}" for k in range(100)]
    left = dict.fromkeys(names, 1.0)
    planner = build_planner(PLANNERS[name].options(), RunBudget(1.0, 100, 100, cohort=0.1))
    state, costs = planner.start(), []
    for number in range(1, 101):
        decision = planner.decide(state, np.zeros(0), left, RNG)
        assert isinstance(decision, Decision)
        for name in cohort(0, number, decision.active, 0.1, 1):
            left[name] -= decision.cost
        costs.append(decision.cost)
        state = planner.observe(state, decision, 0.0)
    assert 1 - np.mean(list(left.values())) >= 0.55
    assert min(left.values()) >= -1e-9
    assert np.mean(np.sqrt(0.01 / np.array(costs))) <= 0.45, "deviation of the noise, as a share of the earlier one"
