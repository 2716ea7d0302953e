"""Contributions: Δ̄ and Δ' under the same weights, one client at a time."""

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.arrays import Arrays, sha256
from common.contribution import BLOCK_SIZE, Contribution, Member
from common.wire.sparse_rows import named_rows


@dataclass(frozen=True)
class Share:
    """Contribution of one client: Δ_k, its τ_k local steps and its weight w_k."""

    update: Arrays
    steps: int
    weight: float


def fold(shares: Iterable[Share], model: Arrays | None = None) -> Contribution:
    """Return the total of the clients, in the given order."""
    total = Contribution(magnitude=True, tables=model)
    for share in shares:
        total.add(Member("", share.weight, share.steps), share.update)
    return total


def magnitude(total: Contribution) -> Arrays:
    return total.mean_and_magnitude()[1]


UPDATES = hnp.arrays(np.float32, 5, elements=st.floats(-(2.0**20), 2.0**20, width=32))
SHARES = st.lists(
    st.builds(lambda w, k, p: Share({"w": w}, k, p), UPDATES, st.integers(1, 7), st.floats(0.25, 100)),
    min_size=1,
    max_size=6,
)


def test_by_hand() -> None:
    """Weights 1 and 3: Δ̄ = (2 − 3·2)/4, (4 + 3·0)/4 = −1, 1; Δ' = (2 + 6)/4, 4/4 = 2, 1."""
    sums = fold([Share({"w": np.array([2.0, 4.0])}, 2, 1), Share({"w": np.array([-2.0, 0.0])}, 2, 3)])
    assert (sums.mean_update()["w"].tolist(), magnitude(sums)["w"].tolist()) == ([-1.0, 1.0], [2.0, 1.0])


def test_unequal_steps_by_hand() -> None:
    """D = (3, 6)/3, (1, −1)/1 = (1, 2), (1, −1); τ̄ = 2; Δ̄ = 2·(1, 0.5), Δ' = 2·(1, 1.5)."""
    sums = fold([Share({"w": np.array([3.0, 6.0])}, 3, 1), Share({"w": np.array([1.0, -1.0])}, 1, 1)])
    assert (sums.mean_update()["w"].tolist(), magnitude(sums)["w"].tolist()) == ([2.0, 1.0], [2.0, 3.0])


@given(SHARES)
def test_the_signed_mean_is_never_above_the_mean_of_sizes(shares: list[Share]) -> None:
    """Exactly, not nearly: both are rounded alike. Also under unequal steps and weights."""
    sums = fold(shares)
    assert np.all(np.abs(sums.mean_update()["w"]) <= magnitude(sums)["w"])


@given(SHARES)
def test_clients_of_equal_sign_reach_the_bound(shares: list[Share]) -> None:
    sums = fold(Share({"w": -np.abs(s.update["w"])}, s.steps, s.weight) for s in shares)
    np.testing.assert_array_equal(-sums.mean_update()["w"], magnitude(sums)["w"])


@given(SHARES)
def test_the_mean_is_that_of_updates_per_step(shares: list[Share]) -> None:
    weights = np.array([s.weight for s in shares])
    steps = weights @ [s.steps for s in shares] / weights.sum()
    mean = sum(s.weight * s.update["w"].astype(np.float64) / s.steps for s in shares) * steps / weights.sum()
    np.testing.assert_allclose(fold(shares).mean_update()["w"], mean, rtol=1e-6, atol=1e-6)


@given(UPDATES, st.integers(1, 7), st.floats(0.25, 100))
def test_the_mean_of_a_single_client_is_its_update_and_dra_has_no_effect(
    update: np.ndarray, steps: int, weight: float
) -> None:
    sums = fold([Share({"w": update}, steps, weight)])
    np.testing.assert_array_equal(sums.mean_update()["w"], update)
    np.testing.assert_array_equal(magnitude(sums)["w"], np.abs(update))


def test_arrays_longer_than_a_block_of_any_shape_and_order() -> None:
    rng = np.random.default_rng(0)
    updates: list[Arrays] = [
        {
            "table": rng.normal(size=(3, BLOCK_SIZE)).astype(np.float32).T,
            "scalar": np.array(rng.normal()),
            "none": np.ones(0),
        }
        for _ in range(3)
    ]
    before = [sha256(u) for u in updates]
    sums = fold(Share(u, 1, 1) for u in updates)
    for name, dtype in (("table", np.float32), ("scalar", np.float64), ("none", np.float64)):
        all_three = np.array([u[name] for u in updates], np.float64)
        for ours, plain in ((sums.mean_update(), all_three.mean(0)), (magnitude(sums), np.abs(all_three).mean(0))):
            assert ours[name].dtype == dtype
            np.testing.assert_allclose(ours[name], plain, rtol=1e-6)
    assert [sha256(u) for u in updates] == before


def test_one_client_is_in_memory_at_a_time() -> None:
    alive: list[weakref.ref[np.ndarray]] = []

    def shares() -> Iterator[Share]:
        for _ in range(10):
            array = np.ones(1000)
            alive.append(weakref.ref(array))
            assert sum(ref() is not None for ref in alive) <= 2, "the one made, and the one before until it is let go"
            yield Share({"w": array}, 1, 1)

    assert fold(shares()).weight == 10


def test_without_a_client_there_is_no_mean() -> None:
    with pytest.raises(ValueError, match="at least one member"):
        fold([]).mean_update()


def test_updates_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="agree in names and shapes"):
        fold([Share({"w": np.ones(2)}, 1, 1), Share({"w": np.ones(1)}, 1, 1)])


def test_rows_are_summed_as_whole_tables_are() -> None:
    rng = np.random.default_rng(0)
    model = {"items": np.zeros((9, 3), np.float32), "bias": np.zeros(4, np.float32)}
    whole, sent = [], []
    for k, ids in enumerate(([0, 4, 8], [4], [], [1, 2, 4])):
        rows, bias = rng.normal(size=(len(ids), 3)).astype(np.float32), rng.normal(size=4).astype(np.float32)
        table = np.zeros((9, 3), np.float32)
        table[ids] = rows
        whole.append(Share({"items": table, "bias": bias}, k + 1, 2.0 + k))
        sent.append(Share({"bias": bias, **named_rows("items", np.array(ids, np.int64), rows)}, k + 1, 2.0 + k))
    sent[2] = whole[2]  # a client may send its whole table
    for one, other in zip(_both(fold(whole)), _both(fold(sent, model)), strict=True):
        assert sha256(one) == sha256(other)


def _both(sums: Contribution) -> tuple[Arrays, Arrays]:
    return sums.mean_and_magnitude()


def test_rows_of_another_width_or_table_are_refused() -> None:
    model = {"items": np.zeros((9, 3), np.float32)}
    for update in (
        named_rows("items", np.array([1]), np.ones((1, 2), np.float32)),
        named_rows("other", np.array([1]), np.ones((1, 3), np.float32)),
        {},
    ):
        with pytest.raises(ValueError, match="agree in names and shapes"):
            fold([Share(update, 1, 1.0)], model)
