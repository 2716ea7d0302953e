"""State of a planner: λ over its simplex, and what a checkpoint stores."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.arrays import sha256
from server.planning.state import (
    NO_DUAL,
    Dual,
    PlannerState,
    admit,
    descend,
    dismiss,
    empty_state,
    from_groups,
    open_dual,
    step_size,
    to_groups,
)
from server.record.folder import Checkpoint, RunDirectory

shares = st.floats(0, 50, allow_subnormal=False)
budgets = st.dictionaries(st.sampled_from([f"client-{i}" for i in range(8)]), shares, min_size=1)


def total_mass(dual: Dual) -> float:
    return float(dual.weights.sum()) + dual.slack


def test_lambda_starts_at_its_bound_over_n_plus_one_each() -> None:
    dual = admit(open_dual(3.0), {"a": 10.0, "b": 5.0, "c": 0.0}, rounds_left=10)
    assert dual.bound * dual.weights == pytest.approx([0.75] * 3)
    assert (dual.rates.tolist(), dual.names) == ([1.0, 0.5, 0.0], ("a", "b", "c"))
    assert not NO_DUAL.is_open
    assert open_dual(0.0).is_open


def test_one_step_by_hand() -> None:
    dual = Dual(2.0, ("a", "b"), np.array([0.5, 0.3]), 0.2, np.array([1.0, 1.0]))
    after = descend(dual, {"a": 1.5}, eta=0.4)  # g = −0.5 and 1
    up, down = 0.5 * math.exp(0.2), 0.3 * math.exp(-0.4)
    assert after.weights == pytest.approx(np.array([up, down]) / (up + down + 0.2))
    assert after.slack == pytest.approx(0.2 / (up + down + 0.2))
    assert after.weights[0] > 0.5
    assert after.weights[1] < 0.3


@given(st.integers(1, 30), st.floats(0.1, 10), st.lists(st.floats(0.5, 1.5), max_size=30))
def test_with_equal_budgets_the_sum_follows_the_scalar_recursion(n: int, z: float, costs: list[float]) -> None:
    names = [f"client-{i}" for i in range(n)]
    dual, eta = admit(open_dual(z), dict.fromkeys(names, 100.0), 100), step_size(n, 100)
    scalar = z * n / (n + 1)  # λ·N, and z − λ·N is the slack
    for cost in costs:
        dual = descend(dual, dict.fromkeys(names, cost), eta)
        scaled = scalar * math.exp(-eta * (1 - cost))
        scalar = z * scaled / (scaled + z - scalar)
        assert dual.total == pytest.approx(scalar)
        assert np.ptp(dual.weights) == pytest.approx(0, abs=1e-15)


@given(budgets, st.lists(st.tuples(budgets, budgets), max_size=12), st.floats(0, 10), st.floats(0, 3))
def test_lambda_stays_on_the_scaled_simplex_while_clients_join_and_retire(
    first: dict[str, float], rounds: list[tuple[dict[str, float], dict[str, float]]], z: float, eta: float
) -> None:
    dual = admit(open_dual(z), first, 5)
    for joining, spent in rounds:
        dual = descend(admit(dismiss(dual, list(spent)[:1]), joining, 3), spent, eta)
        assert (dual.weights > 0).all()
        assert dual.total <= z * (1 + 1e-12)
        assert total_mass(dual) == pytest.approx(1)
        assert len(set(dual.names)) == len(dual.names) == len(dual.weights) == len(dual.rates)


@given(st.floats(0.01, 1.9), st.floats(0.01, 3))
def test_lambda_rises_after_overspending_and_falls_after_saving(excess: float, eta: float) -> None:
    dual = admit(open_dual(1.0), {"a": 10.0, "b": 10.0}, 10)
    over, under = (descend(dual, dict.fromkeys("ab", cost), eta) for cost in (1 + excess, max(1 - excess, 0)))
    assert (over.weights > dual.weights).all()
    assert (under.weights < dual.weights).all()


def test_a_client_without_charge_has_a_lower_price() -> None:
    dual = descend(admit(open_dual(1.0), {"a": 10.0, "b": 10.0}, 10), {"a": 1.0}, 0.5)
    assert dual.weights[1] < dual.weights[0]


def test_the_value_of_an_arm_is_over_active_clients() -> None:
    dual = Dual(2.0, ("a", "b"), np.array([0.5, 0.25]), 0.25, np.array([1.0, 3.0]))
    costs = np.array([1.0, 1.25])
    assert dual.value(costs, {"a", "b"}) == pytest.approx([1.0 * 0 + 0.5 * 2, 1.0 * -0.25 + 0.5 * 1.75])
    assert dual.value(costs, {"a"}) == pytest.approx([0, -0.25])
    assert dual.value(costs, {"x"}) == pytest.approx([0, 0])


def test_a_late_joining_client_gets_an_even_share_and_a_retired_one_leaves_slack() -> None:
    dual = admit(admit(open_dual(1.0), {"a": 4.0, "b": 4.0}, 4), {"a": 0.0, "c": 6.0}, 2)
    assert dual.weights == pytest.approx([0.25, 0.25, 0.25])
    assert dual.rates == pytest.approx([1.0, 1.0, 3.0])
    after = dismiss(dual, ["b", "unknown"])
    assert after.names == ("a", "c")
    assert [*after.weights, after.slack] == pytest.approx([0.25, 0.25, 0.5])


def test_the_step_size_is_the_paper_s_for_many_clients_and_positive_for_one() -> None:
    assert step_size(943, 100) == pytest.approx(2 * math.log(943) / 10, rel=1e-3)
    assert step_size(1, 100) > 0


def test_a_loaded_state_equals_the_saved_one(tmp_path: Path) -> None:
    history = (
        empty_state(2).history.append(3, np.array([9.0, 1.5]), -0.1, 0.7).append(0, np.array([8.0, 1.0]), 1e-9, 1.0)
    )
    dual = descend(admit(open_dual(3.0), {"ann": 2.0, "Zoë, 2\n/x": 1.0}, 4), {"ann": 1.0}, 0.5)
    state = PlannerState(history, dual)
    runs = RunDirectory(tmp_path, "run")
    runs.create({}, {})
    runs.checkpoints.save(Checkpoint(2, 0, {"model": {"w": np.ones(2)}, **to_groups(state)}), best_round=2)
    groups = runs.checkpoints.load(2).groups
    back = from_groups(groups)
    assert {n: sha256(a) for n, a in to_groups(back).items()} == {n: sha256(a) for n, a in to_groups(state).items()}
    assert (back.dual.names, back.dual.bound, back.dual.slack) == (dual.names, 3.0, dual.slack)
    assert groups["model"]["w"].tolist() == [1, 1]


def test_a_loaded_initial_state_equals_the_saved_one() -> None:
    back = from_groups(to_groups(empty_state(5)))
    assert (len(back.history), back.history.contexts.shape, back.dual.is_open) == (0, (0, 5), False)
