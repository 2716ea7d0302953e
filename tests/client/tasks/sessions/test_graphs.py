"""Session graphs: by hand, and against a plain loop over examples."""

import itertools

import numpy as np
import pytest
import torch

from client.tasks.sessions.learner import collate
from common.tasks.sessions.vocabulary import Clicks


def clicks(*items: int) -> Clicks:
    return np.array(items, np.int64)


def test_one_session_by_hand() -> None:
    """Clicks 4 2 4 2 7: edges 4→2 and 2→4, each once however often clicked, and 2→7."""
    batch = collate([clicks(4, 2, 4, 2, 7)], [1], 20)
    assert batch.nodes.tolist() == [0, 3, 5, 8]  # padding, and items 2, 4, 7 as rows of the embedding
    assert batch.clicks.tolist() == [2, 1, 2, 1, 3]
    assert batch.owner.tolist() == [1, 1, 1, 1, 1]
    assert batch.last.tolist() == [3]
    assert batch.edges.tolist() == [[1, 1, 2], [2, 3, 1]]
    assert batch.w_out.tolist() == [0.5, 0.5, 1]
    assert batch.w_in.tolist() == [1, 1, 1]
    assert (batch.target.tolist(), batch.weights.tolist()) == ([1], [1])


def test_a_repeated_click_is_an_edge_to_itself() -> None:
    batch = collate([clicks(3, 3, 1)], [0], 20)
    assert batch.nodes.tolist() == [0, 2, 4]
    assert batch.edges.tolist() == [[2, 2], [1, 2]]
    assert batch.w_out.tolist() == [0.5, 0.5]
    assert batch.w_in.tolist() == [1, 1]


def test_long_prefixes_keep_their_last_clicks() -> None:
    batch = collate([clicks(5, 6, 7, 8), clicks(9)], [1, 2], 3)
    assert batch.nodes.tolist() == [0, 7, 8, 9, 10]
    assert batch.edges.tolist() == [[1, 2], [2, 3]]
    assert batch.clicks.tolist() == [1, 2, 3, 4]
    assert batch.owner.tolist() == [1, 1, 1, 2]
    assert batch.last.tolist() == [3, 4]


def test_many_examples_as_a_plain_loop_makes_them() -> None:
    rng = np.random.default_rng(0)
    prefixes = [rng.integers(0, 6, rng.integers(1, 12)) for _ in range(200)]
    batch = collate(prefixes, [0] * 200, 8)
    rows, found = batch.nodes.tolist(), {}
    for (u, v), w_in, w_out in zip(batch.edges.T.tolist(), batch.w_in.tolist(), batch.w_out.tolist(), strict=True):
        found[u, v] = w_in, w_out
    expected = {}
    for k, prefix in enumerate(prefixes):
        kept = prefix[-8:].tolist()
        places = batch.clicks[batch.owner == k + 1].tolist()
        node_of = dict(zip(kept, places, strict=True))
        assert [rows[place] - 1 for place in places] == kept
        assert batch.last[k] == places[-1]
        links = set(itertools.pairwise(kept))
        for a, b in links:
            in_degree, out_degree = sum(v == b for _, v in links), sum(u == a for u, _ in links)
            expected[node_of[a], node_of[b]] = pytest.approx((1 / in_degree, 1 / out_degree))
    assert found == expected
    assert len(rows) == 1 + sum(len(set(prefix[-8:].tolist())) for prefix in prefixes)


def test_types_are_those_that_torch_computes_with() -> None:
    batch = collate([clicks(1, 2)], [0], 20)
    assert all(
        t.dtype == torch.int64 for t in (batch.nodes, batch.edges, batch.clicks, batch.owner, batch.last, batch.target)
    )
    assert batch.w_in.dtype == batch.w_out.dtype == batch.weights.dtype == torch.float32


def test_no_example_and_no_click_still_have_a_node_to_point_at() -> None:
    nothing = collate([], [], 20)
    assert nothing.nodes.tolist() == [0]
    assert nothing.edges.shape == (2, 0)
    assert nothing.last.shape == nothing.clicks.shape == (0,)
    unclicked = collate([clicks(), clicks(4)], [0, 0], 20)
    assert (unclicked.clicks.tolist(), unclicked.owner.tolist(), unclicked.last.tolist()) == ([1], [2], [0, 1])
