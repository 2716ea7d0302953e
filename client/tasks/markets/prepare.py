"""One market made ready for a run: split, with vectors of its items, and what is asked of a scorer while it trains."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from client.data.partition import own_rng
from client.tasks.markets.baseline import MarketBaseline, scorer_features
from client.tasks.markets.data.counts import bounded_counts, graph_counts
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import Graph, Sparse
from client.tasks.markets.data.markets import Market
from client.tasks.markets.data.split import SplitMarket, split_market
from common.arrays import Arrays
from common.tasks.markets.counts import KEYS, Elsewhere, no_counts
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue

Places = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ReadyMarket:
    """A market in one run.

    Args:
        split: What it trains on and holds out.
        vectors: A vector of length 1 of each of its n items, n × width.
        told: Whether those are made of texts; ids resemble each other by chance only.
        counts: What it adds to the sums over markets.
        seed: The run's.
        options: The task's.
    """

    split: SplitMarket
    vectors: Vectors
    told: bool
    counts: Arrays
    seed: int
    options: MarketsOptions

    @property
    def graph(self) -> Graph:
        """The training graph."""
        return self.split.graph

    def line(self, graph: Graph, statics: Arrays) -> MarketBaseline:
        """The line fitted on a graph of these items, with what the sums over other markets say, where there are any."""
        texts = self.vectors if self.told else self.vectors[:, :0]
        return MarketBaseline.of(graph, texts, self.elsewhere(statics))

    def elsewhere(self, statics: Arrays) -> Elsewhere:
        """What the sums over other markets say of these items."""
        items = self.graph.items
        return Elsewhere.of(statics, items) if KEYS in statics else Elsewhere.nothing(len(items))

    def masked(self, split: str) -> Sparse:
        """What cannot be an answer when `split` is asked for: neighbours that are no part of it or of what came before."""
        return (self.split.test if split == "test" else self.split.validation).graph.weights

    def numbers(self, statics: Arrays) -> Vectors:
        """The scorer's training data, E × (1 + R) × F: E questions, each with the right candidate first, then R rivals.

        Half of them are about pairs that `split.fit` holds out, on the graph without those; half about items as if they
        were new, of those that other markets know where counts are shared: without, popularity is all there is.
        """
        fit, whole = self.split.fit, self.graph
        rng = own_rng(self.seed, f"questions of {self.split.market.name}")
        fitted, full = self.line(fit.graph, statics), self.line(whole, statics)
        familiar = full.elsewhere.degrees > 0 if KEYS in statics else np.ones(len(whole.items), bool)
        known = self._asked(fit.right, np.ones(len(whole.items), bool), fit.graph.weights, rng)
        new = self._asked(whole.weights, familiar, None, rng)
        return np.concatenate([scorer_features(fitted, *known), scorer_features(full, *new, new=True)])

    def _asked(
        self, right: Sparse, suits: NDArray[np.bool_], graph: Sparse | None, rng: np.random.Generator
    ) -> tuple[Places, Places]:
        """At most `fit_most` queries, E, and their candidates, E × (1 + R).

        Items are drawn alike, however many right answers they have, as metrics are means over queries.

        Args:
            right: n × n, right answers.
            suits: Which items may be queries, n.
            graph: What the queries are known by, near which half of the rivals are found, since there a ranking errs; None
                where nothing is known of them.
            rng: Draws queries, answers and rivals.
        """
        counts = np.diff(right.indptr)
        able = np.flatnonzero(suits & (counts > 0)).astype(np.int64)
        total = min(int(counts[able].sum()), self.options.fit_most)
        query = rng.choice(able, total) if total else able
        answer = right.indices[right.indptr[query] + rng.integers(counts[query])].astype(np.int64)
        barred = right.astype(bool) if graph is None else (right + graph).astype(bool)
        reached = csr_array(barred.shape) if graph is None else graph @ graph
        size, count = barred.shape[0], self.options.rivals
        rivals = [_rivals(_row(barred, q), _row(reached, q), count, size, q, rng) for q in query.tolist()]
        return query, np.column_stack([answer, np.reshape(rivals, (len(query), self.options.rivals)).astype(np.int64)])


def _rivals(barred: Places, reached: Places, count: int, size: int, query: int, rng: np.random.Generator) -> Places:
    """Items that are no right answers: half of those within reach; the query itself where nothing else is left."""
    allowed = np.ones(size, bool)
    allowed[np.append(barred, query)] = False
    near, anyone = reached[allowed[reached]], np.flatnonzero(allowed)
    pool = anyone if len(anyone) else np.array([query])
    half = count // 2
    return np.append(rng.choice(near if len(near) else pool, half), rng.choice(pool, count - half))


def _row(matrix: Sparse, k: int) -> Places:
    """Columns of row k that hold something."""
    columns: Places = matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]].astype(np.int64)
    return columns


def prepare(market: Market, goods: MarketCatalogue, options: MarketsOptions, seed: int) -> ReadyMarket:
    """Split a market and look its items up."""
    split = split_market(market, options, seed)
    items = split.graph.items
    told = options.features != "ids" and any(goods.text(item) for item in items.tolist())
    return ReadyMarket(
        split, item_features(goods, items, options), told, _counts(split, goods, options, seed), seed, options
    )


def _counts(split: SplitMarket, goods: MarketCatalogue, options: MarketsOptions, seed: int) -> Arrays:
    """Of the training pairs; where what a user adds is bounded, of all that was rated but by held-out users."""
    size, ratings = len(goods.items), split.validation.ratings
    if not options.bounded:
        return graph_counts(split.graph, size)
    unnamed = split.market.listed and options.count_epsilon  # lists name no users whom noise could hide
    if unnamed or not (split.market.listed or len(ratings)):
        return no_counts(size)
    return bounded_counts(ratings, size, own_rng(seed, f"bounds of {split.market.name}"))
