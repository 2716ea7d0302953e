"""BGTplanner: stages, prices, and preference of the arm with the highest reward."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from common.arrays import Floats
from common.methods.planners import BGTplanner
from server.planning.bgt import BanditPlanner
from server.planning.planner import Decision, RunBudget, Stop
from server.planning.state import PlannerState, from_groups, to_groups

NAMES = ("ann", "bob", "cyd")


def play(
    planner: BanditPlanner, gain: dict[int, float], seed: int = 0, scale: float = 1.0, sway: float = 0.1
) -> list[Decision]:
    """Plan a whole run with equal budgets and rewards by arm, under contexts of 10 ± sway."""
    state, left = planner.start(), planner.budget.total
    decisions: list[Decision] = []
    rng = np.random.default_rng(seed)
    while True:
        context = 10 + rng.uniform(-sway, sway, planner.options.context)
        draw = np.random.default_rng([seed, len(decisions)])
        decision = planner.decide(state, context, dict.fromkeys(NAMES, left), draw)
        if isinstance(decision, Stop):
            return decisions
        decisions.append(decision)
        left -= decision.cost
        state = planner.observe(state, decision, scale * gain[decision.arm])


def planner(total: float = 10.0, rounds: int = 100, **options: object) -> BanditPlanner:
    return BanditPlanner(BGTplanner.model_validate(options), RunBudget(total, rounds, len(NAMES)))


PEAKED = {0: -0.5, 1: -0.2, 2: 1.0, 3: -0.2, 4: -0.5}


def decide(p: BanditPlanner, state: PlannerState, context: Floats, left: dict[str, float], seed: int = 0) -> Decision:
    decision = p.decide(state, context, left, np.random.default_rng(seed))
    assert isinstance(decision, Decision)
    return decision


def test_stage_1_plays_every_arm_t0_times_before_stage_2() -> None:
    decisions = play(planner(), PEAKED)
    stages = [d.stage for d in decisions]
    assert (stages.count("1a"), stages.count("1b"), stages[30]) == (25, 5, "2")
    assert np.bincount([d.arm for d in decisions[:25]]).tolist() == [5] * 5
    assert all(sorted(d.arm for d in decisions[i : i + 5]) == list(range(5)) for i in range(0, 25, 5))
    assert [d.arm for d in play(planner(arm_order="code"), PEAKED)[:25]] == [4] * 5 + [3] * 5 + [2] * 5 + [1] * 5 + [
        0
    ] * 5


def test_it_plays_the_arm_with_the_highest_reward_most_often() -> None:
    arms = [d.arm for seed in range(5) for d in play(planner(), PEAKED, seed) if d.stage == "2"]
    counts = np.bincount(arms, minlength=5)
    assert counts[2] > 1.5 * np.delete(counts, 2).max()


def test_the_prediction_is_the_standardized_reward() -> None:
    last = play(planner(), PEAKED)[-1]
    assert last.mean[2] == pytest.approx(1.0, abs=0.05)
    assert last.mean[0] == pytest.approx(-0.5, abs=0.05)
    assert (last.sd > 0).all()
    assert (last.sd < 0.2).all()


@pytest.mark.parametrize("factor", [1e-4, 0.155, 37.0])
def test_units_of_budget_and_reward_do_not_change_a_plan(factor: float) -> None:
    plain, scaled = play(planner(10.0), PEAKED), play(planner(10.0 * factor), PEAKED, scale=factor)
    assert [d.arm for d in plain] == [d.arm for d in scaled]
    assert plain[-1].probabilities == pytest.approx(scaled[-1].probabilities, rel=1e-6)


def test_z_is_equation_10_or_the_cap() -> None:
    paper, cap = (play(planner(z_mode=mode), PEAKED)[-1].dual for mode in ("paper", "cap"))
    m = math.sqrt(4 * math.log(100 * 3) / 5)  # all residuals are about 0: rewards depend on the arm alone
    assert paper.bound == pytest.approx(m + 1.0, abs=0.05)
    assert cap.bound == pytest.approx(1.0)


def test_lambda_is_at_most_z_and_rises_while_every_arm_exceeds_the_even_share() -> None:
    duals = [d.dual for d in play(planner(), PEAKED) if d.stage == "2"]
    assert all(d.total <= d.bound * (1 + 1e-12) for d in duals)
    assert [*duals[0].weights, duals[0].slack] == pytest.approx([0.25] * 4)
    assert all(after.total >= before.total for before, after in pairwise(duals))
    assert all(np.ptp(d.weights) < 1e-12 for d in duals)


def test_unscaled_inputs_predict_0_for_a_new_context() -> None:
    unscaled, standardized = (play(planner(inputs=i), PEAKED, sway=3.0)[-1].mean for i in ("code", "standardised"))
    assert np.abs(unscaled).max() < 1e-6
    assert np.abs(standardized).max() > 0.1


def test_the_gamma_of_the_code_is_small_for_many_clients() -> None:
    many = RunBudget(10.0, 100, 943)
    code, derived = (BanditPlanner(BGTplanner(gamma=g), many).gamma for g in ("code", "derived"))
    assert code == pytest.approx(0.68, abs=0.005)
    assert derived == pytest.approx(8.5, abs=0.02)
    assert math.isfinite(planner(rounds=1).gamma)


def test_an_unaffordable_arm_has_probability_0() -> None:
    p = planner()
    state, context = run_to_stage_2(p), np.full(5, 10.0)
    left = {"ann": 5.0, "bob": 0.1069, "cyd": 0.05}  # bob can pay the two cheapest arms, cyd none
    for seed in range(30):
        decision = decide(p, state, context, left, seed)
        assert (decision.probabilities[2:] == 0).all()
        assert (decision.arm < 2, decision.retired, decision.active) == (True, ("cyd",), ("ann", "bob"))
        assert decision.dual.names == ("ann", "bob")


def test_clients_with_different_budgets_have_different_prices() -> None:
    p = planner()
    state, context = run_to_stage_2(p), np.full(5, 10.0)
    first = decide(p, state, context, {"ann": 9.0, "bob": 5.0})
    assert first.dual.rates == pytest.approx([9.0 / 70 / 0.1, 5.0 / 70 / 0.1])
    state = p.observe(state, first, 0.1)
    second = decide(p, state, context, {"ann": 8.9, "bob": 4.9, "late": 10.0})
    ann, bob, late = second.dual.weights
    assert bob > ann
    assert [late, second.dual.rates[2]] == pytest.approx([0.25, 10.0 / 69 / 0.1])
    spared = p.observe(state, second, 0.1, spent={"ann": second.cost}).dual
    assert spared.weights[1] / spared.weights[0] < bob / ann, "bob is not in the cohort and is charged nothing"


def test_the_first_round_of_stage_2_is_equations_4_to_13_by_hand() -> None:
    """Solve two arms, T₀ = 2 and no context densely: four rounds of stage 1a, two of 1b, then stage 2."""
    options = BGTplanner(arms=2, t0=2, context=0, omega=0.3, length_scale=1.0, sigma=0.5)
    p, rewards = BanditPlanner(options, RunBudget(10.0, 20, 1)), [0.5, -0.1, 0.3, 0.2, -0.4, 0.1]
    state, nothing = p.start(), np.zeros(0)
    for t, reward in enumerate(rewards):
        decision = decide(p, state, nothing, {"a": 10.0}, t)
        state = p.observe(state, decision, reward)
    decision = decide(p, state, nothing, {"a": 7.0})

    arms, r = state.history.arms.astype(float), np.array(rewards) / 0.5

    def predict(seen: int, arm: float, now: int) -> float:
        rounds = np.arange(1, seen + 1)
        decay = 0.7 ** (np.abs(np.subtract.outer(rounds, rounds)) / 2)
        gram = np.exp(-(np.subtract.outer(arms[:seen], arms[:seen]) ** 2) / 2) * decay
        cross = np.exp(-((arms[:seen] - arm) ** 2) / 2) * 0.7 ** ((now - rounds) / 2)
        return float(cross @ np.linalg.inv(gram + 0.25 * np.eye(seen)) @ r[:seen])

    first = np.array([[predict(4, a, t) for a in (0, 1)] for t in (5, 6)])
    residuals = [r[t] - predict(4, arms[t], t + 1) for t in (4, 5)]
    m = math.sqrt(2 / 2 * float(np.square(residuals).sum()) + 4 * math.log(20) / 2)
    z = first.max(axis=1).mean() + m  # the allowance is 1 + 2M shares, the most expensive arm costs 1.25
    mean = np.array([predict(6, a, 7) for a in (0, 1)])
    value = mean + z / 2 * (7.0 / 14 / 0.5 - np.array([1.0, 1.25]))
    other = 1 / (2 + 2 * math.sqrt(2 * 20 / math.log(20)) * abs(value[0] - value[1]))
    assert decision.dual.bound == pytest.approx(z)
    assert decision.mean == pytest.approx(mean)
    assert decision.probabilities.min() == pytest.approx(other)
    assert np.argmax(decision.probabilities) == np.argmax(value)


def test_a_retired_client_has_no_price() -> None:
    p = planner()
    state, context = run_to_stage_2(p), np.full(5, 10.0)
    both = decide(p, state, context, {"ann": 5.0, "bob": 5.0})
    alone = decide(p, p.observe(state, both, 0.1), context, {"ann": 5.0, "bob": 0.05})
    assert (alone.retired, alone.dual.names) == (("bob",), ("ann",))
    assert alone.dual.slack + alone.dual.weights.sum() == pytest.approx(1)


def run_to_stage_2(p: BanditPlanner) -> PlannerState:
    state, left = p.start(), p.budget.total
    for t in range(30):
        decision = decide(p, state, np.full(5, 10.0), dict.fromkeys(NAMES, left), t)
        left -= decision.cost
        state = p.observe(state, decision, PEAKED[decision.arm])
    return state


def test_numbers_for_the_journal_are_finite() -> None:
    numbers = play(planner(), PEAKED)[-1].numbers()
    assert {"arm", "cost", "p_arm", "predicted", "predicted_sd", "lambda", "lambda_max"} <= numbers.keys()
    assert all(isinstance(x, float) and math.isfinite(x) for x in numbers.values())


LOSSES, GAINS = (-0.2, -0.4, -0.6, -0.8, -1.0), (0.2, 0.4, 0.6, 0.8, 1.0)


def wide_planner(rounds: int = 100, **options: object) -> BanditPlanner:
    chosen = {"arms_kind": "wide", "t0": 2, "context": 0, **options}
    return BanditPlanner(BGTplanner.model_validate(chosen), RunBudget(float(rounds), rounds, len(NAMES)))


def play_wide(
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


def test_a_run_without_gains_ends_and_leaves_budget() -> None:
    decisions, stop, _ = play_wide(wide_planner(), LOSSES)
    assert stop.reason == "no arm promises a gain"
    assert sum(d.cost for d in decisions) < 100 * 0.6
    assert [d.stage for d in decisions[:12]] == ["1a"] * 10 + ["1b"] * 2


def test_it_ends_after_as_many_doubts_as_the_option_allows() -> None:
    lengths = [len(play_wide(wide_planner(doubts=doubts), LOSSES)[0]) for doubts in (1, 3, 30)]
    assert lengths[0] == 12
    assert lengths[0] < lengths[2]
    assert lengths[1] <= lengths[2]


def test_a_run_with_gains_spends_its_budget() -> None:
    decisions, stop, _ = play_wide(wide_planner(), GAINS)
    assert "no client can pay" in stop.reason or "rounds are done" in stop.reason
    assert all(d.doubts == 0 for d in decisions)
    assert 90 < sum(d.cost for d in decisions) <= 100 * (1 + 1e-9)


def test_a_skip_costs_no_round_and_lowers_the_price_of_the_budget() -> None:
    skipping = wide_planner(doubts=1000)
    decisions, _, states = play_wide(skipping, (-0.2, -0.4, 0.3, -0.8, -1.0))
    assert sum(d.skipped for d in decisions) > 0
    assert len(states[-1].history) == len(decisions)
    number, state = next((d, s) for d, s in zip(decisions, states, strict=False) if d.skipped and s.dual.is_open)
    assert number.dual.total < state.dual.total
    assert number.numbers()["skipped"] == number.skipped


def test_exploration_spends_at_most_half_of_a_short_budget() -> None:
    for seed in range(4):
        decisions, _, _ = play_wide(wide_planner(20), LOSSES, seed)
        explored = [d.cost for d in decisions if d.stage != "2"]
        assert len(explored) == 6
        assert sum(explored) <= 10 + 4 * 0.5


def test_no_decision_exceeds_what_a_client_has_left() -> None:
    for seed in range(5):
        left = 20.0
        for decision in play_wide(wide_planner(20), GAINS, seed)[0]:
            assert decision.cost <= left * (1 + 1e-9)
            left -= decision.cost


def test_doubts_survive_a_checkpoint() -> None:
    state = replace(wide_planner().start(), doubts=2)
    assert from_groups(to_groups(state)).doubts == 2
    old = to_groups(state)
    old["planner_dual"]["scalars"] = old["planner_dual"]["scalars"][:2]
    assert from_groups(old).doubts == 0


def test_equation_9_may_skip_where_all_arms_lose() -> None:
    decisions, _, _ = play_wide(wide_planner(doubts=30, z_mode="paper"), LOSSES)
    paper, _, _ = play_wide(wide_planner(arms_kind="paper"), LOSSES)
    bounds = [next(d.dual.bound for d in one if d.dual.is_open) for one in (decisions, paper)]
    assert bounds[0] > bounds[1]
