"""One market made ready for a run: split, with vectors of its items, and what is asked of a scorer while it trains."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from client.data.markets.counting import bounded_counts, graph_counts
from client.data.markets.features import item_features
from client.data.markets.graph import Graph, Sparse
from client.data.markets.market import Market
from client.data.markets.split import SplitMarket, split_market
from client.data.people import own_rng
from client.tasks.market_line import MarketLine, scorer_features
from common.arrays import Arrays
from common.tasks.markets import Goods, MarketsOptions
from common.tasks.markets_counts import KEYS, Elsewhere, add_pairs

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

    def line(self, graph: Graph, statics: Arrays) -> MarketLine:
        """The line fitted on a graph of these items, with what the sums over markets say but for its own part in them."""
        texts = self.vectors if self.told else self.vectors[:, :0]
        if KEYS not in statics:
            return MarketLine.of(graph, texts, Elsewhere.nothing(len(graph.items)))
        others = add_pairs([statics, self.counts], [1.0, -1.0])
        return MarketLine.of(graph, texts, Elsewhere.of(others, graph.items))

    def masked(self, split: str) -> Sparse:
        """What cannot be an answer when `split` is asked for: neighbours that are no part of it or of what came before."""
        return (self.split.test if split == "test" else self.split.validation).graph.weights

    def numbers(self, statics: Arrays) -> Vectors:
        """The scorer's training data, E × (1 + R) × F: E questions, each with the right candidate first, then R rivals.

        Half of them are about pairs that `split.fit` holds out, on the graph without those; half about items as if they
        were new.
        """
        fit, whole = self.split.fit, self.graph
        rng = own_rng(self.seed, f"questions of {self.split.market.name}")
        known = self._asked(fit.right, fit.graph.weights, rng)
        new = self._asked(whole.weights, None, rng)
        return np.concatenate(
            [
                scorer_features(self.line(fit.graph, statics), *known),
                scorer_features(self.line(whole, statics), *new, new=True),
            ]
        )

    def _asked(self, right: Sparse, graph: Sparse | None, rng: np.random.Generator) -> tuple[Places, Places]:
        """At most `fit_most` queries, E, and their candidates, E × (1 + R).

        Args:
            right: n × n, right answers.
            graph: What the queries are known by, near which half of the rivals are found, since there a ranking errs; None
                where nothing is known of them.
            rng: Draws queries and rivals.
        """
        query, answer = (ends.astype(np.int64) for ends in right.nonzero())
        some = np.sort(rng.permutation(len(query))[: self.options.fit_most])
        query, answer = query[some], answer[some]
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


def prepare(market: Market, goods: Goods, options: MarketsOptions, seed: int) -> ReadyMarket:
    """Split a market and look its items up."""
    split = split_market(market, options, seed)
    items = split.graph.items
    told = options.features != "ids" and any(goods.text(item) for item in items.tolist())
    return ReadyMarket(
        split, item_features(goods, items, options), told, _counts(split, goods, options, seed), seed, options
    )


def _counts(split: SplitMarket, goods: Goods, options: MarketsOptions, seed: int) -> Arrays:
    """Of the training part only."""
    size = len(goods.items)
    if not options.bound_users:
        return graph_counts(split.graph, size)
    return bounded_counts(split.validation.ratings, size, own_rng(seed, f"bounds of {split.market.name}"))
