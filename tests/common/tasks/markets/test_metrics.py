"""Ranking metrics against brute force over all orders of ties, or sampled orders."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from common.tasks.markets.metrics import Sparse, ranking_metrics

KEYS = {"mrr10", "mrr20", "ndcg10", "ndcg20", "recall20"}


def of_order(order: list[int], right: set[int]) -> dict[str, float]:
    """Compute the metrics of one query for that order of items, by their definitions."""
    metrics = {}
    for top in (10, 20):
        places = [place for place, item in enumerate(order[:top], start=1) if item in right]
        ideal = sum(1 / np.log2(place + 1) for place in range(1, min(top, len(right)) + 1))
        metrics[f"mrr{top}"] = 1 / places[0] if places else 0.0
        metrics[f"ndcg{top}"] = sum(1 / np.log2(place + 1) for place in places) / ideal
        metrics["recall20"] = len(places) / len(right)
    return metrics


def matrix(size: int, rows: dict[int, set[int]]) -> Sparse:
    dense = np.zeros((size, size), np.float32)
    for row, columns in rows.items():
        dense[row, sorted(columns)] = 1
    return csr_array(dense)


def evaluate(scores: np.ndarray, right: dict[int, set[int]], masked: dict[int, set[int]]) -> dict[str, float]:
    size = len(scores)
    metrics, queries = ranking_metrics(lambda q: scores[q].copy(), matrix(size, right), matrix(size, masked))
    assert queries == len(right)
    return metrics


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.sets(st.integers(1, 4), min_size=1, max_size=4))
def test_ties_count_as_the_mean_over_all_their_orders(levels: list[int], right: set[int]) -> None:
    scores = np.tile(np.array(levels, float), (6, 1))
    candidates = [1, 2, 3, 4]  # 0 is the query, 5 its neighbor
    orders = [order for order in permutations(candidates) if all(np.diff([levels[k] for k in order]) <= 0)]
    expected = {key: np.mean([of_order(list(order), right)[key] for order in orders]) for key in KEYS}
    assert evaluate(scores, {0: right}, {0: {5}}) == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1))
def test_metrics_without_ties_are_those_of_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((60, 60))
    right = {int(q): set(rng.choice(60, rng.integers(1, 40), replace=False).tolist()) for q in rng.choice(60, 5, False)}
    masked = {q: set(rng.choice(60, 6).tolist()) for q in right}
    right = {q: items - masked[q] - {q} or {(q + 1) % 60} for q, items in right.items()}
    masked = {q: items - right[q] for q, items in masked.items()}
    rows = []
    for q, items in right.items():
        order = [k for k in np.argsort(-scores[q]).tolist() if k != q and k not in masked[q]]
        rows.append(of_order(order, items))
    expected = {key: np.mean([row[key] for row in rows]) for key in KEYS}
    assert evaluate(scores, right, masked) == pytest.approx(expected)


@pytest.mark.parametrize("above", [0, 8, 15])
def test_a_long_tie_across_the_cut_is_its_expectation(above: int) -> None:
    size, right = 60, {20, 31, 45}
    scores = np.zeros((size, size))
    scores[0, 1 : above + 1] = 1
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(8000):
        tail = rng.permutation(np.arange(above + 1, size)).tolist()
        drawn.append(of_order([*range(1, above + 1), *tail], right))
    metrics = evaluate(scores, {0: right}, {})
    for key in KEYS:
        assert metrics[key] == pytest.approx(np.mean([row[key] for row in drawn]), abs=0.01)


@pytest.mark.parametrize("chunks", [20, 50, 512])
@pytest.mark.parametrize("kind", ["apart", "sparse", "few levels", "one place"])
def test_maxima_of_parts_miss_no_right_answer(chunks: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with ranks of the right answers in whole rows."""
    monkeypatch.setattr("common.tasks.markets.metrics.ROW_PARTS", chunks)
    size, rng = 1203, np.random.default_rng(4)
    scores = rng.standard_normal((size, size)).astype(np.float32)
    if kind == "sparse":
        scores *= rng.random((size, size)) < 0.01
    if kind == "few levels":
        scores = np.round(2 * scores) / 2
    if kind == "one place":
        scores[:, :40] += 9.0
    queries = [0, 7, 500, 1202]
    right = {q: set(rng.choice(size, 30).tolist()) | set(np.argsort(-scores[q])[:25:3].tolist()) for q in queries}
    right = {q: items - {q} for q, items in right.items()}
    masked = {q: set(rng.choice(size, 9).tolist()) - right[q] for q in queries}
    gains = {top: np.append(1 / np.log2(np.arange(2, top + 2)), np.zeros(size)) for top in (10, 20)}
    expected = {"ndcg10": 0.0, "ndcg20": 0.0, "recall20": 0.0}
    for q, items in right.items():
        left = np.array([k for k in range(size) if k != q and k not in masked[q]])
        for item in items:
            above = int((scores[q, left] > scores[q, item]).sum())
            places = slice(above, above + int((scores[q, left] == scores[q, item]).sum()))
            for top in (10, 20):
                expected[f"ndcg{top}"] += gains[top][places].mean() / gains[top][: len(items)].sum() / len(queries)
            expected["recall20"] += (np.arange(size)[places] < 20).mean() / len(items) / len(queries)
    metrics = evaluate(scores, right, masked)
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)


def test_perfect_scores_are_worth_one() -> None:
    right = {0: {3, 4}, 2: {1}}
    scores = matrix(30, right).toarray()
    assert evaluate(scores, right, {0: {5}}) == pytest.approx(dict.fromkeys(KEYS, 1.0))


def test_a_masked_item_is_no_right_answer() -> None:
    scores = np.random.default_rng(0).random((8, 8))
    both, without = {0: {1, 2}}, {0: {1}}
    assert evaluate(scores, both, {0: {2}}) == evaluate(scores, without, {0: {2}})
    assert ranking_metrics(lambda q: scores[q], matrix(8, {0: {2}}), matrix(8, {0: {2}})) == ({}, 0)


def test_negative_scores_rank_above_masked_items() -> None:
    scores = np.full((5, 5), -3.0)
    scores[0, 4] = -2.0
    assert evaluate(scores, {0: {4}}, {0: {1, 2}})["mrr20"] == 1.0


def test_a_nan_score_makes_the_metrics_nan() -> None:
    scores = np.zeros((5, 5))
    scores[0, 3] = np.nan
    assert all(np.isnan(value) for value in evaluate(scores, {0: {1}}, {}).values())


def test_many_blocks_are_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (40, 40)).astype(float)
    right = {q: {int(rng.integers(40))} - {q} or {(q + 1) % 40} for q in range(40)}
    whole = evaluate(scores, right, {})
    monkeypatch.setattr("common.tasks.markets.metrics.BLOCK_SCORES", 7 * 40)
    assert evaluate(scores, right, {}) == pytest.approx(whole)
