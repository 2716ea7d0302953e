"""Recommendations of related items by a finished model; on the client, from its own market.

An exported network gives the same list without torch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from client.tasks.lists import LEARNT, UNSEEN, ItemFilter, about, best_first
from client.tasks.markets.baseline import FULL_WEIGHT, MarketBaseline, shrinkage_weight
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import Graph, graph_counts, graph_of, propagated
from client.tasks.markets.data.markets import Market
from client.tasks.registry import Network
from common.arrays import Arrays, Floats32, Ints
from common.config.run import RunConfig
from common.errors import DataError, StateError
from common.tasks.markets import blend
from common.tasks.markets.pairs import (
    COLD_FEATURES,
    DEGREES,
    FEATURES,
    KEYS,
    VALUES,
    OtherMarketCounts,
    add_pairs,
    includes,
)
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.options import VARIANTS
from common.text import hint

SUMS = (KEYS, VALUES, DEGREES)

Scorer = Callable[[Graph, int], Floats32]
"""Scorer: a graph of n items and the place of one among them -> scores of all with it, n."""


@dataclass(frozen=True)
class Companion:
    """A related item."""

    item: str
    title: str
    """Title; empty if the catalogue has none."""
    score: float
    """Score of the model; it ranks, and is no probability."""
    why: str
    """Reason, in one clause."""


def companions(
    config: RunConfig,
    goods: MarketCatalogue,
    trained: Arrays,
    market: Market,
    item: int,
    top: int,
    chosen: ItemFilter = UNSEEN,
    *,
    by_walk: bool = False,
) -> list[Companion]:
    """Return the `top` items of a market most related to one, best first; ties by item.

    Items without a pair in the market count too, and so does an item that is not sold there; for those, sums of other
    markets decide if the run has them.

    Seen items of `chosen` are those with a pair in the market. `by_walk` ranks by the market's own random walk.
    """

    def scores(graph: Graph, k: int) -> Floats32:
        if by_walk:
            walk: Floats32 = market_baseline(config, goods, trained, graph).scores(np.array([k]))[0]
            return walk
        return _scores(config, goods, trained, graph, k)

    return list_companions(config, goods, trained, market, item, top, scores, chosen)


def list_companions(
    config: RunConfig,
    goods: MarketCatalogue,
    statics: Arrays,
    market: Market,
    item: int,
    top: int,
    scores_of: Scorer,
    chosen: ItemFilter = UNSEEN,
) -> list[Companion]:
    """Return the items with the highest scores, as `companions` does."""
    named = np.unique(np.concatenate([market.ratings[:, 1], market.pairs.ravel(), [item]]))
    options = config.options_of(TASK)
    graph = graph_of(market, options.co_rating).among(named)
    query = int(np.searchsorted(graph.items, item))
    scores = scores_of(graph, query)
    allowed = chosen.allowed(len(goods.items), graph.items[graph.weights[[query]].indices])[graph.items]
    allowed[query] = False
    best = best_first(scores, allowed)[:top].tolist()
    titles = goods.titles or ("",) * len(goods.items)
    others = None if options.bound_users else _elsewhere(statics, graph, len(goods.items))  # bounded counts are shares
    return [
        Companion(goods.items[i], titles[i], float(scores[k]), _reason(graph, query, k, goods, others))
        for k, i in zip(best, graph.items[best].tolist(), strict=True)
    ]


def seen_companions(config: RunConfig, market: Market, item: int) -> Ints:
    """Return the items that have a pair with one in the market."""
    graph = graph_of(market, config.options_of(TASK).co_rating)
    query = np.flatnonzero(graph.items == item)
    return np.asarray(graph.items[graph.weights[query].indices])


def _reason(graph: Graph, query: int, other: int, goods: MarketCatalogue, counts: OtherMarketCounts | None) -> str:
    """Return the reason of an item: pairs of the own market first, then sums of other markets."""
    mine_here, theirs = graph.weights[[query]].tocsr(), graph.weights[[other]].tocsr()
    if other in mine_here.indices:
        return "goes with it in your market already"
    common, mine, yours = np.intersect1d(mine_here.indices, theirs.indices, return_indices=True)
    if len(common):
        link = common[int(np.minimum(mine_here.data[mine], theirs.data[yours]).argmax())]
        index = int(graph.items[link])
        return f"both go with '{goods.titles[index] if goods.titles and goods.titles[index] else goods.items[index]}'"
    number = about(float(counts.pairs[[query]].toarray()[0, other])) if counts is not None else ""
    return f"{number} records of other markets pair them" if number else LEARNT


def labelled(goods: MarketCatalogue, item: int) -> str:
    """Return an item's id, followed by its title if it has one."""
    return " ".join((goods.items[item], *goods.titles[item : item + 1])).rstrip()


def item_named(text: str, goods: MarketCatalogue) -> int:
    """Find an item by its id, or by its title without regard to case.

    Raises:
        DataError: No item has that name, or several have.
    """
    fits = [k for k, name in enumerate(goods.items) if name == text]
    fits = fits or [k for k, title in enumerate(goods.titles) if title.lower() == text.lower()]
    if len(fits) > 1:
        raise DataError(f"{len(fits)} items have the title '{text}'; name one by its id: {goods.items[fits[0]]}, …")
    if not fits:
        raise DataError(f"the catalogue has no item '{text}'{hint(text, goods.items) or hint(text, goods.titles)}")
    return fits[0]


def _scores(config: RunConfig, goods: MarketCatalogue, trained: Arrays, graph: Graph, query: int) -> Floats32:
    """Return the model's scores of the graph's n items with the one at `query`."""
    if blend.is_solved(trained):
        solved = market_baseline(config, goods, trained, graph)
        weights = trained[blend.WEIGHTS] + (trained["scorer.weight"][0] if "scorer.weight" in trained else 0)
        blended: Floats32 = solved.weighted_scores(np.array([query]), weights)[0]
        return blended
    if config.model != "default":
        return _network_scores(config, goods, trained, graph, query)
    weight = trained["scorer.weight"][0]
    if len(weight) != len(FEATURES):
        raise StateError(f"the model has weights of {len(weight)} features instead of {len(FEATURES)}; train it again")
    weighed: Floats32 = market_baseline(config, goods, trained, graph).weighted_scores(np.array([query]), weight)[0]
    return weighed


def _network_scores(config: RunConfig, goods: MarketCatalogue, trained: Arrays, graph: Graph, query: int) -> Floats32:
    import torch

    from client.tasks.markets.networks import embed, network_inputs
    from common.models import build_model, tensors

    x = torch.from_numpy(smooth_features(config, goods, graph))
    has_edges, every = config.model not in VARIANTS, torch.arange(len(x))
    shown = network_inputs(x, [graph], config.options_of(TASK), has_edges=has_edges)
    with torch.no_grad():
        z = embed(build_model(TASK, config.task_run(TASK, goods)), tensors(trained), shown, every).numpy()
    alike: Floats32 = (z[[query]] @ z.T)[0]
    return alike


def smooth_features(config: RunConfig, goods: MarketCatalogue, graph: Graph) -> Floats32:
    """Return the propagated features of a graph's items, the input of the paper's networks, n × width.

    Networks of packages get the features themselves.
    """
    options = config.options_of(TASK)
    weights = graph.weights if options.adjacency == "counts" else graph.weights.sign()
    hops = options.smoothing if config.model in VARIANTS else 0
    return propagated(weights, item_features(goods, graph.items, options), hops)


def market_baseline(config: RunConfig, goods: MarketCatalogue, statics: Arrays, graph: Graph) -> MarketBaseline:
    """Return the count-based predictors of a graph, with sums of other markets if the run has them."""
    options = config.options_of(TASK)
    vectors = item_features(goods, graph.items, options)
    has_text = options.features != "ids" and any(goods.text(k) for k in graph.items.tolist())
    texts = vectors if has_text else vectors[:, :0]
    others = _elsewhere(statics, graph, len(goods.items))
    return MarketBaseline.of(graph, texts, others, with_ease=blend.is_solved(statics))


def _elsewhere(trained: Arrays, graph: Graph, items: int) -> OtherMarketCounts:
    """Return the counts of other markets: the sums, less those of this market if included."""
    if KEYS not in trained:
        return OtherMarketCounts.zeros(len(graph.items))
    sums, market_counts = {name: trained[name] for name in SUMS}, graph_counts(graph, items)
    if blend.ITEMS in trained:  # under noise there are no pairs
        market_counts = blend.restricted(market_counts, trained[blend.ITEMS])
    return OtherMarketCounts.of(
        add_pairs([sums, market_counts], [1.0, -1.0]) if includes(sums, market_counts) else sums, graph.items
    )


def companions_by(
    network: Network, config: RunConfig, goods: MarketCatalogue, statics: Arrays, market: Market, item: int, top: int
) -> list[Companion]:
    """Return the items that `companions` returns, by an exported network."""

    def score(graph: Graph, query: int) -> Floats32:
        if config.model == "paper":
            inputs = paper_inputs(config, goods, graph, query)
        else:
            inputs = scorer_inputs(market_baseline(config, goods, statics, graph), query)
        scores: Floats32 = network(inputs)
        return scores

    return list_companions(config, goods, statics, market, item, top, score)


def scorer_inputs(baseline: MarketBaseline, item: int) -> Arrays:
    """Return both groups of features of all n items with one, and the shrinkage weight κ of their sum."""
    query, n = np.array([item]), len(baseline.degree)
    kappa = shrinkage_weight(baseline.degree[query], baseline.reach)
    graph, cold = np.zeros((baseline.first_cold, n), np.float32), np.zeros((len(COLD_FEATURES), n), np.float32)
    if kappa[0] > 0:
        graph[:] = [x[0] for x in baseline.graph_features(query)]
    if kappa[0] < FULL_WEIGHT:
        cold[:] = [x[0] for x in baseline.cold_features(query)]
    return {"graph": graph, "cold": cold, "kappa": kappa}


def paper_inputs(config: RunConfig, goods: MarketCatalogue, graph: Graph, query: int) -> Arrays:
    """Return the propagated features of the n items and the place of the query among them."""
    inputs = {"propagated": smooth_features(config, goods, graph), "place": np.array([query])}
    if config.options_of(TASK).network == "spe":
        inputs |= {"items": graph.items, "degrees": np.diff(graph.weights.indptr).astype(np.float32)}
    return inputs
