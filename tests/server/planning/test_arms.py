"""Cost levels, and those that all active clients can pay."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.methods.planners import ArmOptions
from server.planning.planner import build_offer, cost_levels

budgets = st.dictionaries(st.sampled_from("abcdefg"), st.floats(-1, 20) | st.sampled_from([math.nan, math.inf, 0.0]))


def test_the_cost_levels_of_the_paper() -> None:
    assert cost_levels(0.1, ArmOptions()) == pytest.approx([0.1, 0.10625, 0.1125, 0.11875, 0.125])
    assert cost_levels(0.1, ArmOptions(spacing="code")) == pytest.approx([0.1, 0.105, 0.11, 0.115, 0.12])
    assert cost_levels(0.1, ArmOptions(arms=1)) == pytest.approx([0.1])


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
