"""Wide arms: doubling costs, skipped decisions, and the end of a run in which no arm promises a gain."""

from dataclasses import replace

import numpy as np
import pytest

from common.methods.planners import ArmOptions, BGTplanner
from server.planning.bgt import BanditPlanner
from server.planning.planner import Decision, RunBudget, Stop, cost_levels
from server.planning.state import PlannerState, from_groups, to_groups

NAMES = ("ann", "bob", "cyd")
LOSSES, GAINS = (-0.2, -0.4, -0.6, -0.8, -1.0), (0.2, 0.4, 0.6, 0.8, 1.0)


def planner(rounds: int = 100, **options: object) -> BanditPlanner:
    chosen = {"arms_kind": "wide", "t0": 2, "context": 0, **options}
    return BanditPlanner(BGTplanner.model_validate(chosen), RunBudget(float(rounds), rounds, len(NAMES)))


def play(
    planner: BanditPlanner, rewards: tuple[float, ...], seed: int = 0
) -> tuple[list[Decision], Stop, list[PlannerState]]:
    """Plan a whole run, one share a round, with a reward for each arm."""
    states, left, decisions = [planner.start()], planner.budget.total, list[Decision]()
    while True:
        draw = np.random.default_rng([seed, len(decisions)])
        remaining = dict.fromkeys(NAMES, left)
        decision = planner.decide(states[-1], np.zeros(planner.options.context), remaining, draw)
        if isinstance(decision, Stop):
            return decisions, decision, states
        decisions.append(decision)
        left -= decision.cost
        states.append(planner.observe(states[-1], decision, rewards[decision.arm]))


def test_wide_arms_double_from_half_a_share() -> None:
    assert cost_levels(0.1, ArmOptions(arms_kind="wide")) == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8])


def test_a_run_without_gains_ends_and_leaves_budget() -> None:
    decisions, stop, _ = play(planner(), LOSSES)
    assert stop.reason == "no arm promises a gain"
    assert sum(d.cost for d in decisions) < 100 * 0.6
    assert [d.stage for d in decisions[:12]] == ["1a"] * 10 + ["1b"] * 2


def test_it_ends_after_as_many_doubts_as_the_option_allows() -> None:
    lengths = [len(play(planner(doubts=doubts), LOSSES)[0]) for doubts in (1, 3, 30)]
    assert lengths[0] == 12
    assert lengths[0] < lengths[2]
    assert lengths[1] <= lengths[2]


def test_a_run_with_gains_spends_its_budget() -> None:
    decisions, stop, _ = play(planner(), GAINS)
    assert "no client can pay" in stop.reason or "rounds are done" in stop.reason
    assert all(d.doubts == 0 for d in decisions)
    assert 90 < sum(d.cost for d in decisions) <= 100 * (1 + 1e-9)


def test_a_skip_costs_no_round_and_lowers_the_price_of_the_budget() -> None:
    skipping = planner(doubts=1000)
    decisions, _, states = play(skipping, (-0.2, -0.4, 0.3, -0.8, -1.0))
    assert sum(d.skipped for d in decisions) > 0
    assert len(states[-1].history) == len(decisions)
    number, state = next((d, s) for d, s in zip(decisions, states, strict=False) if d.skipped and s.dual.is_open)
    assert number.dual.total < state.dual.total
    assert number.numbers()["skipped"] == number.skipped


def test_exploration_spends_at_most_half_of_a_short_budget() -> None:
    for seed in range(4):
        decisions, _, _ = play(planner(20), LOSSES, seed)
        explored = [d.cost for d in decisions if d.stage != "2"]
        assert len(explored) == 6
        assert sum(explored) <= 10 + 4 * 0.5


def test_no_decision_exceeds_what_a_client_has_left() -> None:
    for seed in range(5):
        left = 20.0
        for decision in play(planner(20), GAINS, seed)[0]:
            assert decision.cost <= left * (1 + 1e-9)
            left -= decision.cost


def test_doubts_survive_a_checkpoint() -> None:
    state = replace(planner().start(), doubts=2)
    assert from_groups(to_groups(state)).doubts == 2
    old = to_groups(state)
    old["planner_dual"]["scalars"] = old["planner_dual"]["scalars"][:2]
    assert from_groups(old).doubts == 0


def test_equation_9_may_skip_where_all_arms_lose() -> None:
    decisions, _, _ = play(planner(doubts=30, z_mode="paper"), LOSSES)
    paper, _, _ = play(planner(arms_kind="paper"), LOSSES)
    bounds = [next(d.dual.bound for d in one if d.dual.is_open) for one in (decisions, paper)]
    assert bounds[0] > bounds[1]
