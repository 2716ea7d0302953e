"""Metrics of one home compared with the definitions of algorithms.md §1.5."""

from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.tasks.rules.metrics import KEYS, SHORT, TOPS, home_metrics, shown_metrics
from common.tasks.rules.vocabulary import Edges

Triple = tuple[int, int, int]


def edges(*rules: Triple) -> Edges:
    return np.array(rules, dtype=np.int64).reshape(-1, 3)


def brute_force(
    p: np.ndarray, train: set[Triple], positives: set[Triple], negatives: set[Triple], self_pairs: bool
) -> dict[str, float]:
    """Compute the metrics by their definitions, on distinct logits `p`."""
    n, _, relations = p.shape
    sigma = {e: 1 / (1 + exp(-p[e])) for e in positives | negatives}
    losses = [-log(sigma[e]) for e in positives] + [-log(1 - sigma[e]) for e in negatives]
    wins = [p[a] > p[b] for a in positives for b in negatives]
    ranks = [[r for r in range(relations) if p[i, j, r] > p[i, j, t]] for i, j, t in positives]
    fresh = [[r for r in above if (i, j, r) not in train] for above, (i, j, _) in zip(ranks, positives, strict=True)]
    universe = [(i, j, r) for i, j, r in product(range(n), range(n), range(relations)) if self_pairs or i != j]
    ranked = sorted((e for e in universe if e not in train), key=lambda e: -p[e])
    mr0 = sum(map(len, ranks)) / len(ranks)
    result = {"loss": sum(losses) / len(losses), "mr0": mr0, "mr1": mr0 + 1, "mr_rt": sum(map(len, fresh)) / len(fresh)}
    result |= {f"hr{top}": len(positives & set(ranked[:top])) / len(positives) for top in TOPS}
    return result | ({"auc": sum(wins) / len(wins)} if wins else {})


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(2, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_home_metrics_are_the_definitions(nodes: int, relations: int, seed: int, self_pairs: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = (nodes, nodes, relations)
    logits = rng.permutation(np.linspace(-3, 3, nodes * nodes * relations)).reshape(shape)
    triples = [tuple(t) for t in rng.permutation(np.argwhere(np.ones(shape))).tolist()]
    size = len(triples) // 4
    train, negatives = triples[:size], triples[size : 2 * size]
    positives = triples[2 * size : 2 * size + 1 + size]
    got = home_metrics(logits, edges(*train), edges(*positives), edges(*negatives), self_pairs=self_pairs)
    assert got is not None
    assert got == pytest.approx(brute_force(logits, set(train), set(positives), set(negatives), self_pairs))
    assert set(got) == set(KEYS) - (set() if negatives else {"auc"})


def test_a_home_without_test_rules_has_no_metrics() -> None:
    assert home_metrics(np.zeros((2, 2, 3)), edges((0, 1, 0)), edges(), edges((1, 0, 1))) is None


def test_the_rule_filter_ranks_valid_rules_only_and_misses_invalid_test_rules() -> None:
    logits = np.arange(2 * 2 * 8, dtype=float).reshape(2, 2, 8)
    valid = np.zeros((2, 2, 8), bool)
    valid[0, 1, 0] = True
    filtered = home_metrics(logits, edges(), edges((0, 1, 0), (1, 0, 1)), edges(), valid=valid)
    unfiltered = home_metrics(logits, edges(), edges((0, 1, 0), (1, 0, 1)), edges())
    assert filtered is not None
    assert filtered["hr5"] == 0.5
    assert unfiltered is not None
    assert unfiltered["hr5"] == 0.0


def test_a_model_that_says_the_same_of_all_rules_gets_the_metrics_of_chance() -> None:
    got = home_metrics(np.zeros((3, 3, 10)), edges((0, 1, 0)), edges((0, 1, 1)), edges((1, 0, 0)))
    assert got is not None
    assert got["loss"] == pytest.approx(log(2))
    assert (got["auc"], got["mr0"], got["mr_rt"]) == (0.5, 4.5, 4.0)
    assert got["hr5"] == pytest.approx(5 / 59)  # 3·2 pairs × 10 relations − 1 training rule


def test_a_diverged_model_gets_nan_everywhere() -> None:
    got = home_metrics(np.full((2, 2, 3), np.nan), edges(), edges((0, 1, 1)), edges((1, 0, 0)))
    assert got is not None
    assert set(got) == set(KEYS)
    assert all(np.isnan(value) for value in got.values())


def test_nothing_handed_in_is_changed() -> None:
    logits, valid = np.random.default_rng(0).normal(size=(3, 3, 4)), np.ones((3, 3, 4), bool)
    before = logits.copy()
    home_metrics(logits, edges((0, 1, 0)), edges((0, 1, 1)), edges((1, 0, 0)), valid=valid)
    np.testing.assert_array_equal(logits, before)
    assert valid.all()


def test_hits_of_the_shown_list_are_counted_in_its_order() -> None:
    logits, positives = np.zeros((3, 3, 9)), edges((0, 1, 0), (1, 2, 5))
    longer = edges(*((2, 1, r) for r in range(5)), (0, 1, 0))
    both = {SHORT: longer, 20: longer}
    assert shown_metrics(logits, both, positives) == {"hr5_shown": 0.0, "hr10_shown": 0.5, "hr20_shown": 0.5}
    short = {SHORT: longer[:5], 20: longer}
    assert shown_metrics(logits, short, positives) == {"hr5_shown": 0.0, "hr10_shown": 0.0, "hr20_shown": 0.5}
    none = {SHORT: edges(), 20: edges()}
    assert shown_metrics(logits, none, positives) == dict.fromkeys(("hr5_shown", "hr10_shown", "hr20_shown"), 0.0)
    assert all(np.isnan(value) for value in shown_metrics(logits * np.nan, both, positives).values())
