"""Contract of every planner: no client overspends, and a resumed run is equal to an uninterrupted one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.arrays import sha256
from common.errors import ConfigError, RunError
from common.methods.planners import PLANNERS, ArmOptions, BGTplanner, PlannerOptions, Uniform
from server.clients.roster import cohort
from server.planning.planner import (
    Decision,
    Planner,
    RoundDecision,
    RunBudget,
    Stop,
    build_offer,
    cost_levels,
    read_round_decision,
)
from server.planning.registry import build_planner
from server.planning.state import PlannerState, from_groups, to_groups

EVERY: list[PlannerOptions] = [
    BGTplanner(context=2),
    BGTplanner(context=2, inputs="code", gamma="code", spacing="code", arm_order="code", z_mode="cap"),
    BGTplanner(context=0, arms=1, t0=1),
    Uniform(),
    *(PLANNERS[name].options() for name in PLANNERS if name not in ("bgtplanner", "uniform")),
]
"""Options of every planner, with those of installed packages."""

NAMES = [f"client-{i}" for i in range(5)]

rewards = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1e-9, -1e-9])

contexts = st.lists(st.floats(0, 1e6), min_size=2, max_size=2)

turn = st.tuples(rewards, contexts, st.sets(st.sampled_from(NAMES)))


def ask(planner: Planner, state: PlannerState, context: list[float], left: dict[str, float], t: int) -> Decision | Stop:
    size = getattr(getattr(planner, "options", None), "context", 2)
    return planner.decide(state, np.array(context[:size]), left, np.random.default_rng([7, t]))


@settings(deadline=None, max_examples=120)
@given(
    st.sampled_from(EVERY),
    st.integers(1, 30),
    st.lists(st.floats(0, 3), min_size=5, max_size=5),
    st.lists(turn, min_size=30, max_size=31),
)
def test_no_client_overspends(
    options: PlannerOptions, rounds: int, budgets: list[float], turns: list[tuple[float, list[float], set[str]]]
) -> None:
    planner = build_planner(options, RunBudget(2.0, rounds, len(NAMES)))
    state, left, retired = planner.start(), dict(zip(NAMES, budgets, strict=True)), set[str]()
    for t, (reward, context, absent) in enumerate(turns):
        decision = ask(planner, state, context, {k: v for k, v in left.items() if k not in retired}, t)
        retired |= set(decision.retired)
        if isinstance(decision, Stop):
            break
        assert decision.probabilities.sum() == pytest.approx(1)
        assert decision.probabilities[decision.arm] > 0
        assert not retired & set(decision.active)
        charges = {name: decision.cost for name in decision.active if name not in absent}
        left = {name: left[name] - charges.get(name, 0.0) for name in NAMES}
        assert min(left.values()) >= 0
        state = planner.observe(state, decision, reward, charges)
    assert len(state.history) <= rounds


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(EVERY), st.lists(turn, min_size=24, max_size=24), st.integers(0, 23))
def test_a_resumed_run_equals_an_uninterrupted_one(
    options: PlannerOptions, turns: list[tuple[float, list[float], set[str]]], stop: int
) -> None:
    planner = build_planner(options, RunBudget(2.0, 30, len(NAMES)))
    state, left = planner.start(), dict.fromkeys(NAMES, 2.0)
    for t, (reward, context, absent) in enumerate(turns):
        again = from_groups(to_groups(state)) if t >= stop else state
        decision, other = ask(planner, state, context, left, t), ask(planner, again, context, left, t)
        assert type(decision) is type(other)
        if isinstance(decision, Stop) or isinstance(other, Stop):
            break
        assert (decision.arm, decision.cost, decision.numbers()) == (other.arm, other.cost, other.numbers())
        assert np.array_equal(decision.probabilities, other.probabilities)
        charges = {name: decision.cost for name in decision.active if name not in absent}
        left = {name: left[name] - charges.get(name, 0.0) for name in NAMES}
        state, again = planner.observe(state, decision, reward, charges), planner.observe(again, other, reward, charges)
        assert fingerprints(state) == fingerprints(again)


@pytest.mark.parametrize("options", EVERY, ids=lambda o: o.name)
def test_a_decision_read_from_json_is_equal(options: PlannerOptions) -> None:
    budget = 2.0 if options.needs_noise else math.inf
    planner = build_planner(options, RunBudget(budget, 14, len(NAMES)))
    state, is_open = planner.start(), []
    left = {**dict.fromkeys(NAMES, budget), 'Zoë, "2"\n/x': budget, "small": 1e-3}
    for t in range(14):
        decision = ask(planner, state, [3.0 + t, 1 / 3], left, t)
        if isinstance(decision, Stop):
            break
        announced = RoundDecision(t, decision, left, failed=t == 2)
        read = read_round_decision(announced.to_json())
        again = read.decision
        assert (read.to_json(), read.number, read.left, read.failed) == (announced.to_json(), t, left, t == 2)
        assert [type(value) for value in vars(again).values()] == [type(value) for value in vars(decision).values()]
        assert (again.active, again.retired, again.numbers()) == (decision.active, decision.retired, decision.numbers())
        assert again.dual.names == decision.dual.names
        after = planner.observe(state, again, 0.1 * t, dict.fromkeys(decision.active, decision.cost), 1.5)
        state = planner.observe(state, decision, 0.1 * t, dict.fromkeys(decision.active, decision.cost), 1.5)
        assert fingerprints(after) == fingerprints(state)
        is_open.append(again.dual.is_open)
    assert not is_open[0]
    assert is_open[-1] == isinstance(options, BGTplanner), "with λ in stage 2"


def fingerprints(state: PlannerState) -> dict[str, str]:
    return {name: sha256(arrays) for name, arrays in to_groups(state).items()}


@pytest.mark.parametrize("options", EVERY, ids=lambda o: o.name)
def test_a_diverged_round_is_an_error_and_does_not_change_the_state(options: PlannerOptions) -> None:
    planner = build_planner(options, RunBudget(2.0, 30, 1))
    state = planner.start()
    decision = ask(planner, state, [1.0, 1.0], {"a": 2.0}, 0)
    assert isinstance(decision, Decision)
    for value in (math.nan, math.inf):
        with pytest.raises(RunError, match="diverged"):
            planner.observe(state, decision, value)
        with pytest.raises(RunError, match="diverged"):
            planner.observe(state, decision, 0.0, update_norm=value)
    planner.observe(state, decision, 0.5)
    assert len(state.history) == 0


@pytest.mark.parametrize("options", EVERY, ids=lambda o: o.name)
def test_it_stops_without_active_clients_and_after_all_rounds(options: PlannerOptions) -> None:
    planner = build_planner(options, RunBudget(2.0, 2, 1))
    stop = ask(planner, planner.start(), [1.0, 1.0], {"a": -0.1, "b": math.nan}, 0)
    assert isinstance(stop, Stop)
    assert stop.retired == ("a", "b")
    state = planner.start()
    for t in range(2):
        decision = ask(planner, state, [1.0, 1.0], {"a": 9.0}, t)
        assert isinstance(decision, Decision)
        state = planner.observe(state, decision, 0.1)
    end = ask(planner, state, [1.0, 1.0], {"a": 9.0}, 2)
    assert isinstance(end, Stop)
    assert "2 rounds" in end.reason


@pytest.mark.parametrize("name", [options.name for options in EVERY])
def test_a_plateau_stops_a_run_only_with_early_stopping(name: str) -> None:
    kind = PLANNERS[name].options
    for stop, rounds in (("plateau", 6), ("never", 20)):
        planner = build_planner(kind(stop=stop, patience=4), RunBudget(2.0, 20, 1))
        state, t = planner.start(), 0
        while isinstance(decision := planner.decide(state, np.ones(5), {"a": 9.0}, np.random.default_rng(t)), Decision):
            state = planner.observe(state, decision, 0.1 if t < 2 else -0.1)
            t += 1
        assert t == rounds


@pytest.mark.parametrize("total", [0.0, -1.0, math.inf, math.nan])
def test_a_planner_without_a_budget_is_refused_with_a_remedy(total: float) -> None:
    for options in (options for options in EVERY if options.needs_noise):
        with pytest.raises(ConfigError, match=r"privacy\.unit"):
            build_planner(options, RunBudget(total, 10, 1))


def test_arguments_are_not_changed() -> None:
    planner = build_planner(EVERY[0], RunBudget(2.0, 12, 2))
    state, left = planner.start(), {"a": 2.0, "b": 2.0}
    for t in range(10):
        before = fingerprints(state)
        decision = ask(planner, state, [1.0, 2.0], left, t)
        assert isinstance(decision, Decision)
        after = planner.observe(state, decision, 0.1)
        assert (fingerprints(state), left) == (before, {"a": 2.0, "b": 2.0})
        state = after


budgets = st.dictionaries(st.sampled_from("abcdefg"), st.floats(-1, 20) | st.sampled_from([math.nan, math.inf, 0.0]))


def test_the_cost_levels_of_the_paper() -> None:
    assert cost_levels(0.1, ArmOptions()) == pytest.approx([0.1, 0.10625, 0.1125, 0.11875, 0.125])
    assert cost_levels(0.1, ArmOptions(spacing="code")) == pytest.approx([0.1, 0.105, 0.11, 0.115, 0.12])
    assert cost_levels(0.1, ArmOptions(arms=1)) == pytest.approx([0.1])
    assert cost_levels(0.1, ArmOptions(arms_kind="wide")) == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8])


def test_clients_that_cannot_pay_retire_and_the_smallest_budget_limits_the_arms() -> None:
    offer = build_offer(np.array([1.0, 2.0, 3.0]), {"a": 9.0, "b": 2.5, "c": 0.5, "d": math.nan})
    assert (offer.active, offer.retired, offer.arms.tolist()) == (("a", "b"), ("c", "d"), [0, 1])
    assert offer.remaining == {"a": 9.0, "b": 2.5}


def test_a_shortfall_by_rounding_costs_the_remaining_budget() -> None:
    almost = math.nextafter(1.0, 0.0)
    offer = build_offer(np.array([1.0, 2.0]), {"a": almost, "b": 5.0})
    assert (offer.arms.tolist(), offer.costs.tolist()) == ([0], [almost, 2.0])
    assert build_offer(np.array([1.0]), {"a": 1 - 1e-6}).retired == ("a",)


def test_all_clients_can_pay_an_arm_of_cost_0() -> None:
    assert build_offer(np.zeros(1), {"a": 0.0, "b": math.inf}).active == ("a", "b")


@given(budgets, st.lists(st.floats(0.01, 10), min_size=1, max_size=5).map(sorted))
def test_every_client_can_pay_the_offer_arms_or_retires(remaining: dict[str, float], costs: list[float]) -> None:
    offer = build_offer(np.array(costs), remaining)
    assert sorted(offer.active + offer.retired) == sorted(remaining)
    assert all(offer.costs[a] <= remaining[name] for a in offer.arms for name in offer.active)
    assert all(not remaining[name] >= costs[0] for name in offer.retired)
    assert not offer.active or 0 in offer.arms


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
