"""Row-wise means: each row is averaged over its senders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.arrays import Arrays, mean, sha256
from server.aggregation.replies import rescale_rows


def test_by_hand() -> None:
    """Row 0 from both, row 1 from the second, row 2 from nobody; the other array is the plain mean."""
    first: Arrays = {"items": np.array([[2.0], [0.0], [0.0]]), "bias": np.array([1.0])}
    second: Arrays = {"items": np.array([[4.0], [5.0], [0.0]]), "bias": np.array([3.0])}
    rows = [{"items": np.array([0])}, {"items": np.array([0, 1])}]
    found = mean(rescale_rows([first, second], rows, [1, 1]), [1, 1])
    assert (found["items"].tolist(), found["bias"].tolist()) == ([[3.0], [5.0], [0.0]], [2.0])


def test_full_tables_are_unchanged_and_count_in_every_row() -> None:
    whole: Arrays = {"items": np.array([[2.0], [6.0]])}
    assert sha256(rescale_rows([whole], [{}], [1])[0]) == sha256(whole)
    some: Arrays = {"items": np.array([[4.0], [0.0]])}
    found = mean(rescale_rows([whole, some], [{}, {"items": np.array([0])}], [1, 3]), [1, 3])
    assert found["items"].ravel().tolist() == pytest.approx([(2 + 3 * 4) / 4, 6.0])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 8))
def test_each_row_is_the_mean_over_its_senders(seed: int, clients: int, items: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 3.0, clients).tolist()
    sent = rng.random((clients, items)) < 0.5
    tables = rng.normal(size=(clients, items, 2)) * sent[:, :, None]
    updates: list[Arrays] = [{"items": table} for table in tables]
    before = [table.copy() for table in tables]
    rows = [{"items": np.flatnonzero(one)} for one in sent]
    found = mean(rescale_rows(updates, rows, weights), weights)["items"]
    for i in range(items):
        who = np.flatnonzero(sent[:, i])
        expected = np.average(tables[who, i], axis=0, weights=np.array(weights)[who]) if who.size else np.zeros(2)
        np.testing.assert_allclose(found[i], expected, atol=1e-12)
    np.testing.assert_array_equal(tables, before)
