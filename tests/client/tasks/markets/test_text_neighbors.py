"""Items with the nearest texts."""

import numpy as np

from client.tasks.markets.baseline import NEAREST, text_neighbors


def test_the_nearest_texts_have_shares_by_their_similarity_and_a_query_is_not_among_them() -> None:
    similarity = np.array([[0.2, 1.0, 0.6, -0.5]], np.float32)
    near = text_neighbors(similarity, np.array([1])).toarray()
    np.testing.assert_allclose(near, [[0.25, 0, 0.75, 0]], rtol=1e-6)
    assert similarity[0, 1] == 1


def test_no_more_than_the_nearest_count() -> None:
    similarity = np.linspace(0.1, 0.9, 30, dtype=np.float32)[None]
    near = text_neighbors(similarity, np.array([29])).toarray()[0]
    assert np.flatnonzero(near).tolist() == list(range(29 - NEAREST, 29))
    np.testing.assert_allclose(near.sum(), 1, rtol=1e-6)


def test_items_without_texts_have_no_neighbors() -> None:
    assert text_neighbors(np.zeros((2, 5), np.float32), np.array([0, 3])).nnz == 0
