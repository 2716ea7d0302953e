"""Markets learner: prepared markets, objectives, and full ranking (algorithms.md §5.1, §5.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from torch import Tensor
from torch.func import functional_call

from client.data.dataset import own_rng
from client.tasks.learner import shell
from client.tasks.markets.baseline import MarketBaseline, scorer_features
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import (
    Graph,
    Sparse,
    SplitMarket,
    bounded_counts,
    graph_counts,
    noised,
    split_market,
)
from client.tasks.markets.data.markets import Market, Markets
from client.tasks.markets.networks import TripleSource, embed, network_inputs, similarity, triple_loss
from client.training.stacks import Tensors, cross_entropies
from common.arrays import Arrays, Flags, Floats, Floats32, Ints
from common.models import tensors
from common.tasks.markets import blend
from common.tasks.markets.counts import (
    DEGREES,
    FEATURES,
    KEYS,
    VALUES,
    OtherMarketCounts,
    add_pairs,
    includes,
    no_counts,
)
from common.tasks.markets.metrics import ScoreBlock, query_metrics, ranking_metrics
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest


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

    def baseline(self, graph: Graph, statics: Arrays, *, with_ease: bool = False) -> MarketBaseline:
        """Return the baselines of a graph of these items, with the sums over other markets if shared."""
        texts = self.vectors if self.has_texts else self.vectors[:, :0]
        return MarketBaseline.of(graph, texts, self.other_counts(statics), with_ease=with_ease)

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
        fitted, full = self.baseline(self.split.fit.graph, statics), self.baseline(self.graph, statics)
        is_familiar = full.other_counts.degrees > 0 if KEYS in statics else np.ones(len(self.graph.items), bool)
        return self.features_of(fitted, full, np.ones(len(self.graph.items), bool), is_familiar)

    def features_of(
        self, fitted: MarketBaseline, full: MarketBaseline, is_query: Flags, is_familiar: Flags
    ) -> Floats32:
        """Return features of drawn queries and candidates, E × (1 + R) × F, as `training_features` does.

        Args:
            fitted: Baselines of the graph without the pairs of `split.fit`.
            full: Baselines of the training graph.
            is_query: True for items that may be queries of pairs, n.
            is_familiar: True for items that may be queries as if they were new, n.
        """
        fit, rng = self.split.fit, own_rng(self.seed, f"questions of {self.split.market.name}")
        warm = self._draw_queries(fit.right, is_query, fit.graph.weights, rng)
        cold = self._draw_queries(self.graph.weights, is_familiar, None, rng)
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


BASELINE_METRICS = ("mrr20", "ndcg20")
"""Suffixes of the metrics that are reported for baselines."""

SEEN_PREFIX = "seen_"
"""Prefix of metrics over queries that other markets have; for `protocol=cold` with shared counts."""

QueryMetrics = tuple[Metrics, int]
"""Means of metrics over queries, and the number of queries."""


class MarketsLearner:
    """Learner of the markets task: a client's markets in one run; most clients have one.

    Args:
        run: View of the run's configuration.
        dataset: Markets of the client.
    """

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[MarketsOptions, MarketCatalogue], dataset: Markets) -> None:
        self.options = run.options
        self.module, self._item_count = shell(TASK, run), len(run.vocabulary.items)
        self.markets = [prepare(market, run.vocabulary, self.options, run.seed) for market in dataset.units]
        self._paper = run.model == "paper"
        graphs = [market.graph for market in self.markets]
        self._source = TripleSource.of(graphs, [m.vectors for m in self.markets], self.options) if self._paper else None
        self._inputs = network_inputs(self.triple_source.propagated, graphs, self.options) if self._paper else {}
        self.examples = sum(len(graph.edges) for graph in graphs)
        self.size = len(self.triple_source.features) if self._paper else min(self.examples, self.options.fit_most)
        self._queries: Tensors = {}
        self._catalogue, self._noised = run.vocabulary, run.privacy.unit != "none"
        self._blended: dict[tuple[int, int, bool], MarketBaseline] = {}

    def batch(self, request: TrainRequest) -> Tensors:
        """Return the network's inputs of all items, or the scorer's E queries with 1 + R candidates each."""
        if self._paper:
            return self._inputs
        if not self._queries:  # constant in a run, like graph and sums
            features = [market.training_features(request.statics) for market in self.markets]
            empty = np.zeros((1, 1 + self.options.rivals, len(FEATURES)), np.float32)  # for a market without pairs
            numbers = torch.from_numpy(np.concatenate([*features, empty]))
            self._queries = {"numbers": numbers, "weights": (torch.arange(len(numbers)) < len(numbers) - 1).float()}
        return self._queries

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample the BPR triples of each step, steps × B × 3; the scorer uses all its queries in every step."""
        if not self._paper:
            return {}
        return {"triples": torch.stack([self.triple_source.triples(generator) for _ in range(steps)])}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute a network's loss of its triples, or the mean cross-entropy of the right candidate."""
        if self._paper:
            return triple_loss(self.options, params, embed(self.module, params, batch, inputs["triples"]))
        scores = functional_call(self.module, params, (batch["numbers"],))
        first = torch.zeros(scores.shape[0], dtype=torch.int64)
        losses = cross_entropies(scores, first)
        return (batch["weights"] * losses).sum() / batch["weights"].sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over the queries of all markets, and their number."""
        scores = [self.scores(model, statics, k) for k in range(len(self.markets))]
        statics = self._others(statics)
        return _pool([_evaluate(s, market, split, statics) for s, market in zip(scores, self.markets, strict=True)])

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics of the baselines: walk, popularity and, if counts are shared, popularity with counts."""
        return _pool([_baselines(market, self._others(statics), split) for market in self.markets])

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return NDCG@20 of the queries of each market."""
        return self._each_market(split, [self.scores(model, statics, k) for k in range(len(self.markets))])

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return NDCG@20 of the random walk's queries in each market."""
        [walk], statics = TASK.baselines, self._others(statics)
        scores = [market.baseline(market.graph, statics).scores for market in self.markets]
        return {walk: self._each_market(split, scores)}

    def _each_market(self, split: str, scores: Sequence[ScoreBlock]) -> list[Floats]:
        pairs = zip(scores, self.markets, strict=True)
        rows = [query_metrics(s, m.split.right(split), m.masked(split)) for s, m in pairs]
        return [np.asarray(row.get(TASK.objective.metric, []), np.float64) for row in rows]

    def scores(self, model: Arrays, statics: Arrays, k: int) -> ScoreBlock:
        """Return the scoring function of the k-th market: b query items -> scores of its n items, b × n.

        The networks rank by Z, not by Z̃ = P⁻¹(ξ) of Eq 15 (docs/results/markets.md).
        """
        market = self.markets[k]
        if blend.is_solved(statics):
            return partial(self._blend(statics, k).weighted_scores, weight=statics[blend.WEIGHTS])
        if not self._paper:
            baseline = market.baseline(market.graph, statics)
            return partial(baseline.weighted_scores, weight=model["scorer.weight"][0])
        first = sum(len(earlier.vectors) for earlier in self.markets[:k])
        with torch.no_grad():
            places = torch.arange(first, first + len(market.vectors))
            z = embed(self.module, tensors(model), self._inputs, places).numpy()
        return partial(similarity, z, model=model)

    def counts(self) -> Arrays:
        """Return the counts of users of pairs and of items, summed over the client's markets."""
        return add_pairs([market.counts for market in self.markets])

    def statistics(self, solved: Arrays) -> Arrays:
        """Return the sums over this client's markets of what `blend` needs next.

        Raises:
            WireError: What is solved is not of this vocabulary.
        """
        blend.check(solved, self._catalogue, noised=self._noised)
        if blend.ITEMS not in solved:
            return (blend.popular if self._noised else blend.used)(self.counts()[DEGREES])
        if blend.CANDIDATES not in solved:
            return blend.pair_counts(self.counts(), solved[blend.ITEMS])
        total = blend.template(solved)
        for k, market in enumerate(self.markets):
            fitted, full = self._blend(solved, k, fits=True), self._blend(solved, k)
            for name, a in (derivatives if blend.GRADIENT in total else quality)(market, fitted, full, solved).items():
                total[name] += a
        return total

    def _blend(self, statics: Arrays, k: int, *, fits: bool = False) -> MarketBaseline:
        """Return the features of the k-th market's closed form; `fits`: without the pairs of `split.fit`.

        They are computed once, as the other markets' counts do not change.
        """
        key, market = (k, hash(statics[VALUES].tobytes()), fits), self.markets[k]
        if key not in self._blended:
            graph = market.split.fit.graph if fits else market.graph
            self._blended[key] = market.baseline(graph, self._others(statics), with_ease=True)
        return self._blended[key]

    def _others(self, statics: Arrays) -> Arrays:
        """Return what is solved with the sums of the other clients alone; other statics are theirs already."""
        if blend.ITEMS not in statics or KEYS not in statics:
            return statics
        client_part = blend.restricted(self.counts(), statics[blend.ITEMS])
        has_part = includes(statics, client_part)
        return {**statics, **add_pairs([statics, client_part], [1.0, -1.0])} if has_part else statics

    def private_counts(self, noise_std: float, rng: np.random.Generator) -> Arrays:
        """Return the counts with noise on each.

        A user may be in all of the client's markets and adds a vector of L2 norm at most 1 to the counts of each; the noise is
        multiplied by their number.
        """
        size = self._item_count
        rated = [m.split.validation.ratings for m in self.markets if not m.split.market.listed]
        market_counts = [bounded_counts(ratings, size, rng, np.float64) for ratings in rated if len(ratings)]
        return noised(
            add_pairs([*market_counts, no_counts(size)], dtype=np.float64), size, noise_std * max(len(rated), 1), rng
        )

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """Return the sums without this client's counts; unchanged if its reply came too late to be summed."""
        if KEYS not in statics or not sent or not includes(statics, sent):
            return statics
        return add_pairs([statics, sent], [1.0, -1.0])

    @property
    def triple_source(self) -> TripleSource:
        """Tensors of all markets of the client, from which triples are drawn."""
        assert self._source is not None, "only the paper's networks train on triples"
        return self._source


def _evaluate(
    scores: Callable[[Ints], Floats32], market: ReadyMarket, split: str, statics: Arrays
) -> list[QueryMetrics]:
    """Return metrics over all queries; for cold items with shared counts, also over items sold elsewhere."""
    right, masked = market.split.right(split), market.masked(split)
    results = [ranking_metrics(scores, right, masked)]
    if market.options.protocol == "cold" and KEYS in statics:
        seen = (market.other_counts(statics).degrees > 0).astype(np.float32)
        metrics, count = ranking_metrics(scores, csr_array(right.multiply(seen[:, None])), masked)
        results.append(({f"{SEEN_PREFIX}{key}": value for key, value in metrics.items()}, count))
    return results


def _baselines(market: ReadyMarket, statics: Arrays, split: str) -> list[QueryMetrics]:
    baseline = market.baseline(market.graph, statics)
    predictors = {"walk": baseline.scores, "degree": baseline.popularity}
    if statics:
        predictors["shared"] = baseline.shared
    return [
        ({f"{name}_{key}": value for key, value in metrics.items() if key.endswith(BASELINE_METRICS)}, count)
        for name, scores in predictors.items()
        for metrics, count in _evaluate(scores, market, split, statics)
    ]


def _pool(markets: Sequence[list[QueryMetrics]]) -> tuple[Metrics, Metrics]:
    """Return means over the queries of all markets, and their number."""
    sums: Metrics = {}
    counts: Metrics = {}
    for metrics, count in (result for market in markets for result in market):
        for key, value in metrics.items():
            sums[key] = sums.get(key, 0.0) + value * count
            counts[key] = counts.get(key, 0.0) + count
    return {key: value / counts[key] for key, value in sums.items()}, counts


MOST_QUERIES = 500
"""Largest number of items that are ranked for as if they were new, evenly spaced."""


def derivatives(market: ReadyMarket, fitted: MarketBaseline, full: MarketBaseline, solved: Arrays) -> Arrays:
    """Return gradient and Hessian of the cross-entropy at the weights of each λ.

    A market of n queries has weight √n, the last column of the gradient. Queries are items at even positions.

    Args:
        market: Market.
        fitted: Features of the graph without the pairs of `split.fit`.
        full: Features of the training graph.
        solved: What is solved.
    """
    is_query = _is_even(market)
    x = market.features_of(fitted, full, is_query, is_query & _is_familiar(full)).astype(np.float64)
    statistics = {name: np.zeros(a.shape) for name, a in blend.template(solved).items()}
    share = 1 / np.sqrt(max(len(x), 1))
    for k, weights in enumerate(solved[blend.CANDIDATES]):
        scores = x @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
        mean = (p[..., None] * x).sum(axis=1)
        squares = np.tensordot(p[..., None] * x, x, ((0, 1), (0, 1))) - mean.T @ mean
        statistics[blend.GRADIENT][k] = share * np.append((mean - x[:, 0]).sum(axis=0), len(x))
        statistics[blend.HESSIAN][k] = share * squares
    return statistics


def quality(market: ReadyMarket, fitted: MarketBaseline, full: MarketBaseline, solved: Arrays) -> Arrays:
    """Return √n times the mean of MRR@20 and NDCG@20 over n queries by each choice, 2 × (L + 2).

    Queries are items at odd positions: first those with pairs of `split.fit`, then items as if they were new.
    """
    is_query, choices = ~_is_even(market), blend.choices(solved).astype(np.float32)
    warm = _rows(market.split.fit.right, is_query)
    familiar = np.flatnonzero(is_query & _is_familiar(full) & (full.degree > 0))
    is_new = np.zeros(len(is_query), bool)
    is_new[familiar[:: max(1, -(-len(familiar) // MOST_QUERIES))]] = True
    cold = _rows(market.graph.weights, is_new)
    table = np.zeros((2, len(choices)))
    for c, weight in enumerate(choices):
        ranked = partial(fitted.graph_scores, weight=weight), partial(full.cold_scores, weight=weight)
        found = [
            ranking_metrics(ranked[0], warm, fitted.weights),
            ranking_metrics(ranked[1], cold, csr_array(cold.shape)),
        ]
        table[:, c] = [_weigh(metrics, count) for metrics, count in found]
    return {blend.QUALITY: table}


def _weigh(metrics: dict[str, float], queries: int) -> float:
    """Return the weighted mean of MRR@20 and NDCG@20; 0 without queries."""
    return float(np.sqrt(queries) * (metrics["mrr20"] + metrics["ndcg20"]) / 2) if queries else 0.0


def _is_even(market: ReadyMarket) -> Flags:
    return np.asarray(np.arange(len(market.graph.items)) % 2 == 0)


def _is_familiar(full: MarketBaseline) -> Flags:
    """Return True for items of other markets; for all items if no other market has one of them."""
    is_found: Flags = np.asarray(full.other_counts.degrees > 0)
    return is_found if is_found.any() else ~is_found


def _rows(matrix: Sparse, is_row: Flags) -> Sparse:
    """Return a matrix with the other rows emptied."""
    rows = csr_array(diags_array(is_row.astype(np.float32)) @ matrix)
    rows.eliminate_zeros()
    return rows
