"""Prepared market: split, item features, and training queries of the pair scorer."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from client.data.partition import own_rng
from client.tasks.markets.baseline import MarketBaseline, scorer_features
from client.tasks.markets.data.counts import bounded_counts, graph_counts
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import Graph, Sparse
from client.tasks.markets.data.markets import Market
from client.tasks.markets.data.split import SplitMarket, split_market
from common.arrays import Arrays, Flags, Floats32, Ints
from common.tasks.markets.counts import KEYS, OtherMarketCounts, no_counts
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue


@dataclass(frozen=True, eq=False)
class ReadyMarket:
    """Market in one run.

    Args:
        split: Training, validation and test splits.
        vectors: Features of norm 1 of the n items, n × width.
        has_texts: True if features come from texts; similarity of hashed ids is random.
        counts: Counts that the market adds to the sums over markets.
        seed: Seed of the run.
        options: Options of the task.
    """

    split: SplitMarket
    vectors: Floats32
    has_texts: bool
    counts: Arrays
    seed: int
    options: MarketsOptions

    @property
    def graph(self) -> Graph:
        """Training graph."""
        return self.split.graph

    def baseline(self, graph: Graph, statics: Arrays) -> MarketBaseline:
        """Return the baselines of a graph of these items, with the sums over other markets if shared."""
        texts = self.vectors if self.has_texts else self.vectors[:, :0]
        return MarketBaseline.of(graph, texts, self.other_counts(statics))

    def other_counts(self, statics: Arrays) -> OtherMarketCounts:
        """Return the sums over other markets for these items; zeros if no counts are shared."""
        items = self.graph.items
        return OtherMarketCounts.of(statics, items) if KEYS in statics else OtherMarketCounts.zeros(len(items))

    def masked(self, split: str) -> Sparse:
        """Return pairs that cannot be answers in `split`: neighbors in the graph from which it is predicted."""
        return (self.split.test if split == "test" else self.split.validation).graph.weights

    def training_features(self, statics: Arrays) -> Floats32:
        """Return the scorer's training data, E × (1 + R) × F.

        Each of E queries has its right candidate first, then R negatives. One half predicts pairs of `split.fit` on the graph
        without them. The other half treats items as new: items of other markets if counts are shared, else all items. Without
        shared counts popularity is their only feature.
        """
        fit, whole = self.split.fit, self.graph
        rng = own_rng(self.seed, f"questions of {self.split.market.name}")
        fitted, full = self.baseline(fit.graph, statics), self.baseline(whole, statics)
        is_familiar = full.other_counts.degrees > 0 if KEYS in statics else np.ones(len(whole.items), bool)
        warm = self._draw_queries(fit.right, np.ones(len(whole.items), bool), fit.graph.weights, rng)
        cold = self._draw_queries(whole.weights, is_familiar, None, rng)
        return np.concatenate([scorer_features(fitted, *warm), scorer_features(full, *cold, is_cold=True)])

    def _draw_queries(
        self, right: Sparse, is_query: Flags, graph: Sparse | None, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """Draw at most `fit_most` queries, E, and their candidates, E × (1 + R).

        Items are drawn uniformly, independent of their number of right answers, since metrics are means over queries.

        Args:
            right: Right answers, n × n.
            is_query: True for items that may be queries, n.
            graph: Graph of the queries, within two hops of which half of the negatives lie; None without edges.
            rng: Generator of queries, answers and negatives.
        """
        counts = np.diff(right.indptr)
        eligible = np.flatnonzero(is_query & (counts > 0)).astype(np.int64)
        total = min(int(counts[eligible].sum()), self.options.fit_most)
        query = rng.choice(eligible, total) if total else eligible
        answer = right.indices[right.indptr[query] + rng.integers(counts[query])].astype(np.int64)
        excluded = right.astype(bool) if graph is None else (right + graph).astype(bool)
        reachable = csr_array(excluded.shape) if graph is None else graph @ graph
        size, count = excluded.shape[0], self.options.rivals
        negatives = [
            _draw_negatives(_row(excluded, q), _row(reachable, q), count, size, q, rng) for q in query.tolist()
        ]
        return query, np.column_stack([answer, np.reshape(negatives, (len(query), count)).astype(np.int64)])


def _draw_negatives(
    excluded: Ints, reachable: Ints, count: int, size: int, query: int, rng: np.random.Generator
) -> Ints:
    """Draw items that are not right answers, half of them reachable; the query itself if none is left."""
    is_allowed = np.ones(size, bool)
    is_allowed[np.append(excluded, query)] = False
    near, all_allowed = reachable[is_allowed[reachable]], np.flatnonzero(is_allowed)
    pool = all_allowed if len(all_allowed) else np.array([query])
    half = count // 2
    return np.append(rng.choice(near if len(near) else pool, half), rng.choice(pool, count - half))


def _row(matrix: Sparse, k: int) -> Ints:
    """Return the columns of row k with stored entries."""
    columns: Ints = matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]].astype(np.int64)
    return columns


def prepare(market: Market, catalogue: MarketCatalogue, options: MarketsOptions, seed: int) -> ReadyMarket:
    """Split a market and compute its item features and counts."""
    split = split_market(market, options, seed)
    items = split.graph.items
    has_texts = options.features != "ids" and any(catalogue.text(item) for item in items.tolist())
    return ReadyMarket(
        split,
        item_features(catalogue, items, options),
        has_texts,
        _counts(split, catalogue, options, seed),
        seed,
        options,
    )


def _counts(split: SplitMarket, catalogue: MarketCatalogue, options: MarketsOptions, seed: int) -> Arrays:
    """Count training pairs; if contributions are bounded, all ratings except those of held-out users."""
    size, ratings = len(catalogue.items), split.validation.ratings
    if not options.bounded:
        return graph_counts(split.graph, size)
    # Item lists have no users for whom noise could give a guarantee.
    has_no_users = split.market.listed and options.count_epsilon
    if has_no_users or not (split.market.listed or len(ratings)):
        return no_counts(size)
    return bounded_counts(ratings, size, own_rng(seed, f"bounds of {split.market.name}"))
