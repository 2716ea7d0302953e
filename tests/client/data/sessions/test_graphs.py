"""Session graphs: by hand, and against a plain loop over examples."""

import itertools

import numpy as np
import torch

from client.data.sessions.graphs import collate
from common.tasks.sessions import Clicks


def clicks(*items: int) -> Clicks:
    return np.array(items, np.int64)


def test_one_session_by_hand() -> None:
    """Clicks 4 2 4 2 7: edges 4→2 and 2→4, each once however often clicked, and 2→7."""
    batch = collate([clicks(4, 2, 4, 2, 7)], [1], 20)
    assert batch.nodes.tolist() == [[3, 5, 8]]  # items 2, 4, 7 as rows of the embedding
    assert batch.alias.tolist() == [[1, 0, 1, 0, 2]]
    assert batch.mask.tolist() == [[1, 1, 1, 1, 1]]
    assert batch.a_out.tolist() == [[[0, 0.5, 0.5], [1, 0, 0], [0, 0, 0]]]
    assert batch.a_in.tolist() == [[[0, 1, 0], [1, 0, 0], [1, 0, 0]]]
    assert (batch.target.tolist(), batch.weights.tolist()) == ([1], [1])


def test_a_repeated_click_is_an_edge_to_itself() -> None:
    batch = collate([clicks(3, 3, 1)], [0], 20)
    assert batch.nodes.tolist() == [[2, 4]]
    assert batch.a_out.tolist() == [[[0, 0], [0.5, 0.5]]]
    assert batch.a_in.tolist() == [[[0, 1], [0, 1]]]


def test_long_prefixes_keep_their_last_clicks() -> None:
    batch = collate([clicks(5, 6, 7, 8), clicks(9)], [1, 2], 3)
    assert batch.nodes.tolist() == [[7, 8, 9], [10, 0, 0]]
    assert batch.alias.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert batch.mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_many_examples_as_a_plain_loop_makes_them() -> None:
    rng = np.random.default_rng(0)
    prefixes = [rng.integers(0, 6, rng.integers(1, 12)) for _ in range(200)]
    batch = collate(prefixes, [0] * 200, 8)
    for k, prefix in enumerate(prefixes):
        kept = prefix[-8:].tolist()
        rows = batch.nodes[k].tolist()
        items, links = [row - 1 for row in rows if row], set(itertools.pairwise(kept))
        assert sorted(items) == sorted(set(kept))
        assert [rows[place] - 1 for place in batch.alias[k][: len(kept)].tolist()] == kept
        assert batch.mask[k].tolist() == [1] * len(kept) + [0] * (batch.mask.shape[1] - len(kept))
        for u, v in itertools.product(range(len(rows)), repeat=2):
            linked = u < len(items) and v < len(items) and (items[u], items[v]) in links
            out_degree = sum(rows[u] - 1 == a for a, _ in links)
            in_degree = sum(rows[v] - 1 == b for _, b in links)
            assert batch.a_out[k, u, v] == torch.tensor(linked / max(out_degree, 1), dtype=torch.float32)
            assert batch.a_in[k, v, u] == torch.tensor(linked / max(in_degree, 1), dtype=torch.float32)


def test_types_are_those_that_torch_computes_with() -> None:
    batch = collate([clicks(1, 2)], [0], 20)
    assert batch.nodes.dtype == batch.alias.dtype == batch.target.dtype == torch.int64
    assert batch.mask.dtype == batch.a_in.dtype == batch.a_out.dtype == batch.weights.dtype == torch.float32


def test_no_example_and_no_click_still_have_a_column_to_pad() -> None:
    assert collate([], [], 20).nodes.shape == (0, 1)
    assert collate([], [], 20).a_in.shape == (0, 1, 1)
    assert collate([clicks()], [0], 20).mask.tolist() == [[0]]
