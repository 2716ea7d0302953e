"""Levels of cost, and which of them everybody can pay."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.planning.arms import build_offer, cost_levels

left = st.dictionaries(st.sampled_from("abcdefg"), st.floats(-1, 20) | st.sampled_from([math.nan, math.inf, 0.0]))


def test_the_paper_s_five_arms_for_ten_and_a_hundred_rounds() -> None:
    assert cost_levels(10, 100, 0.8, 5, "linspace") == pytest.approx([0.1, 0.10625, 0.1125, 0.11875, 0.125])
    assert cost_levels(10, 100, 0.8, 5, "code") == pytest.approx([0.1, 0.105, 0.11, 0.115, 0.12])
    assert cost_levels(10, 100, 0.8, 1, "linspace") == pytest.approx([0.1])


def test_those_who_cannot_pay_the_cheapest_retire_and_the_poorest_of_the_rest_says_what_is_affordable() -> None:
    offered = build_offer(np.array([1.0, 2.0, 3.0]), {"rich": 9.0, "poor": 2.5, "broke": 0.5, "odd": math.nan})
    assert (offered.active, offered.retired, offered.arms.tolist()) == (("poor", "rich"), ("broke", "odd"), [0, 1])
    assert offered.remaining == {"rich": 9.0, "poor": 2.5}


def test_a_shortfall_by_rounding_is_none_and_costs_what_is_left() -> None:
    almost = math.nextafter(1.0, 0.0)
    offered = build_offer(np.array([1.0, 2.0]), {"a": almost, "b": 5.0})
    assert (offered.arms.tolist(), offered.costs.tolist()) == ([0], [almost, 2.0])
    assert build_offer(np.array([1.0]), {"a": 1 - 1e-6}).retired == ("a",)


def test_an_arm_that_costs_nothing_is_for_everybody() -> None:
    assert build_offer(np.zeros(1), {"a": 0.0, "b": math.inf}).active == ("a", "b")


@given(left, st.lists(st.floats(0.01, 10), min_size=1, max_size=5).map(sorted))
def test_nobody_is_offered_what_they_cannot_pay_and_nobody_is_lost(
    remaining: dict[str, float], costs: list[float]
) -> None:
    offered = build_offer(np.array(costs), remaining)
    assert sorted(offered.active + offered.retired) == sorted(remaining)
    assert all(offered.costs[a] <= remaining[name] for a in offered.arms for name in offered.active)
    assert all(not remaining[name] >= costs[0] for name in offered.retired)
    assert not offered.active or 0 in offered.arms
