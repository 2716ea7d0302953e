"""Several models: initial copies, assignment, and properties of clusters."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.arrays import Arrays, group, sha256
from server.aggregation.clusters import assign_clusters, pool_ranges, spread_copies

RNG = np.random.default_rng(0)
MODEL: Arrays = {
    "lower.weight": RNG.normal(0, 2.0, (200, 50)).astype(np.float32),
    "head.bias": RNG.normal(0, 0.1, 400).astype(np.float32),
    "linear.weight": np.zeros((3, 4), np.float32),
    "scale": np.full(1, 2.0, np.float32),
}

losses = st.dictionaries(
    st.sampled_from([f"client-{k}" for k in range(12)]),
    st.lists(st.floats(0, 2, allow_subnormal=False), min_size=3, max_size=3),
    min_size=1,
)


def test_the_first_copy_is_the_model_and_the_rest_have_noise_of_each_layers_deviation() -> None:
    copies = spread_copies(MODEL, 4, 0.1, seed=0)
    assert sha256(group("0", copies)) == sha256(MODEL)
    for j in range(1, 4):
        moved = group(str(j), copies)
        assert {n: (a.shape, a.dtype) for n, a in moved.items()} == {n: (a.shape, a.dtype) for n, a in MODEL.items()}
        for name in ("lower.weight", "head.bias"):
            noise = moved[name] - MODEL[name]
            assert noise.std() == pytest.approx(0.1 * MODEL[name].std(), rel=0.1)
            assert abs(noise.mean()) < 0.1 * noise.std() + 5 * noise.std() / math.sqrt(noise.size)
    assert len({sha256(group(str(j), copies)) for j in range(4)}) == 4


def test_a_layer_of_equal_numbers_is_unchanged() -> None:
    for j in range(3):
        moved = group(str(j), spread_copies(MODEL, 3, 0.5, seed=1))
        assert (sha256({n: moved[n] for n in ("linear.weight", "scale")})) == sha256(
            {n: MODEL[n] for n in ("linear.weight", "scale")}
        )


def test_the_seed_determines_the_noise_and_zero_spread_means_none() -> None:
    assert (
        sha256(spread_copies(MODEL, 3, 0.1, 0))
        == sha256(spread_copies(MODEL, 3, 0.1, 0))
        != sha256(spread_copies(MODEL, 3, 0.1, 1))
    )
    copies = spread_copies(MODEL, 3, 0.0, 0)
    assert all(sha256(group(str(j), copies)) == sha256(MODEL) for j in range(3))
    assert list(spread_copies(MODEL, 1, 0.1, 0)) == [f"0/{name}" for name in MODEL]


@given(losses)
def test_each_client_joins_the_model_of_its_lowest_loss(rows: dict[str, list[float]]) -> None:
    for name, j in assign_clusters(rows, "argmin").items():
        assert rows[name][j] == min(rows[name])
    assert assign_clusters(rows, "argmin").keys() == rows.keys()


def test_a_tie_is_broken_by_the_name_which_spreads_clients_over_the_clusters() -> None:
    """Models that start equal would otherwise leave all but the first without a member."""
    tied = {f"client-{k}": [0.3, 0.3, 0.3, 0.9] for k in range(300)}
    chosen = assign_clusters(tied, "argmin")
    counts = np.bincount(list(chosen.values()), minlength=4)
    assert counts[3] == 0
    assert counts[:3].min() > 75, "about a hundred each"
    assert assign_clusters(dict(list(tied.items())[:5]), "argmin").items() <= chosen.items(), (
        "for any other participants"
    )


@given(losses)
def test_by_capacity_clusters_are_filled_evenly(rows: dict[str, list[float]]) -> None:
    chosen = assign_clusters(rows, "capacity")
    assert chosen.keys() == rows.keys()
    assert max(np.bincount(list(chosen.values()))) <= math.ceil(len(rows) / 3)


def test_by_capacity_the_lowest_loss_is_assigned_first_by_hand() -> None:
    """Room for two each. a-0 (.1), b-0 (.2), then 0 is full: c to 1 (.5) in place of 0 (.3), d to 1 (.6)."""
    rows = {"a": [0.1, 0.9], "b": [0.2, 0.3], "c": [0.3, 0.5], "d": [0.4, 0.6]}
    assert assign_clusters(rows, "capacity") == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert assign_clusters(rows, "argmin") == dict.fromkeys(rows, 0)


@pytest.mark.parametrize("rule", ["argmin", "capacity"])
def test_few_clients_many_clusters_and_no_client(rule: str) -> None:
    rows = {"a": [0.4, 0.2, 0.3, 0.1], "b": [0.4, 0.3, 0.2, 0.15]}
    chosen = assign_clusters(rows, rule)  # type: ignore[arg-type]
    assert chosen["a"] == 3
    assert chosen["b"] == (2 if rule == "capacity" else 3), "room for one in each"
    assert assign_clusters({}, rule) == {}  # type: ignore[arg-type]
    assert assign_clusters({"a": [0.4]}, rule) == {"a": 0}  # type: ignore[arg-type]


@given(losses)
def test_the_order_of_the_clients_does_not_matter(rows: dict[str, list[float]]) -> None:
    back = dict(reversed(rows.items()))
    for rule in ("argmin", "capacity"):
        assert assign_clusters(rows, rule) == assign_clusters(back, rule)  # type: ignore[arg-type]


def test_a_clusters_property_holds_on_the_data_of_every_member() -> None:
    low = [np.array([[0.0], [3.0]]), np.array([[-1.0], [4.0]])]
    high = [np.array([[1.0], [5.0]]), np.array([[0.5], [9.0]])]
    found = pool_ranges(low, high)
    assert {name: a.tolist() for name, a in found.items()} == {"low": [[-1.0], [3.0]], "high": [[1.0], [9.0]]}
    assert sha256(pool_ranges(low[:1], high[:1])) == sha256({"low": low[0], "high": high[0]})


def test_bounds_of_an_uncommon_shape_are_omitted() -> None:
    low, high = [np.zeros((2, 1)), np.ones((3, 1)), np.full((2, 1), -1.0)], [np.ones((2, 1))] * 3
    assert pool_ranges(low, high)["low"].tolist() == [[-1.0], [-1.0]]
