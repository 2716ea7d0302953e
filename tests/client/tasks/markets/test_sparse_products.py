"""Products against NumPy's of the dense matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from client.tasks.markets import baseline as multiplying
from client.tasks.markets.baseline import product, tiles, times_transposed
from client.tasks.markets.data.graph import Sparse


def drawn(rows: int, columns: int, share: float, seed: int) -> Sparse:
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 9, (rows, columns)) * (rng.random((rows, columns)) < share)
    return csr_array(dense.astype(np.float32))


@given(st.integers(0, 5), st.integers(1, 9), st.sampled_from([0.0, 0.2, 0.9]), st.integers(0, 99))
def test_a_product_is_that_of_the_dense_matrices(rows: int, size: int, share: float, seed: int) -> None:
    left, right = drawn(rows, size, share, seed), drawn(size, size, share, seed + 1)
    found = product(left, right)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, left.toarray() @ right.toarray())


@pytest.mark.parametrize("terms", [1, 7, 30])
def test_few_terms_held_at_once_make_the_same_product(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplying, "TERMS", terms)
    left, right = drawn(8, 12, 0.3, 0), drawn(12, 12, 0.4, 1)
    np.testing.assert_array_equal(product(left, right), left.toarray() @ right.toarray())


@pytest.mark.parametrize("tile", [1, 5, 12, 100])
def test_rows_pass_through_all_tiles(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplying, "TILE", tile)
    rows, matrix = drawn(4, 12, 0.7, 2).toarray(), drawn(12, 12, 0.4, 3)
    cut = tiles(matrix)
    assert [one.shape[1] for one in cut] == [min(tile, 12 - first) for first in range(0, 12, tile)]
    np.testing.assert_array_equal(times_transposed(cut, rows), rows @ matrix.toarray().T)
