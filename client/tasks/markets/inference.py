"""Recommendations of related items by a finished model; on the client, from its own market."""

from dataclasses import dataclass

import numpy as np
import torch

from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.counts import graph_counts
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import Graph, graph_of, propagated
from client.tasks.markets.data.markets import Market
from client.tasks.markets.networks import embed, network_inputs, similarity
from common.arrays import Arrays, Floats32
from common.config.run import RunConfig
from common.errors import DataError
from common.models import build_model, tensors
from common.options import hint
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, OtherMarketCounts, add_pairs, includes
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue

SUMS = (KEYS, VALUES, DEGREES)


@dataclass(frozen=True)
class Companion:
    """A related item."""

    item: str
    title: str
    """Title; empty if the catalogue has none."""
    score: float
    """Score of the model; it ranks, and is no probability."""


def companions(
    config: RunConfig, goods: MarketCatalogue, trained: Arrays, market: Market, item: int, top: int
) -> list[Companion]:
    """Return the `top` items of a market most related to one, without its known pairs, best first.

    Items without a pair in the market count too, and so does an item that is not sold there; for those, summed counts of
    other markets decide if the run has them.

    Args:
        config: Configuration of the run.
        goods: Catalogue of the run.
        trained: Finished model, with the summed counts.
        market: The market with all its records.
        item: Number of the item in the catalogue.
        top: Number of items.
    """
    named = np.unique(np.concatenate([market.ratings[:, 1], market.pairs.ravel(), [item]]))
    graph = graph_of(market, config.options_of(TASK).co_rating).among(named)
    place = int(np.searchsorted(graph.items, item))
    scores = _scores(config, goods, trained, graph, place)
    scores[np.append(graph.weights[[place]].indices, place)] = -np.inf
    best = [k for k in np.argsort(-scores, kind="stable")[:top].tolist() if np.isfinite(scores[k])]
    titles = goods.titles or ("",) * len(goods.items)
    return [
        Companion(goods.items[i], titles[i], float(scores[k])) for k, i in zip(best, graph.items[best], strict=True)
    ]


def labelled(goods: MarketCatalogue, item: int) -> str:
    """Return an item's id, followed by its title if it has one."""
    return " ".join((goods.items[item], *goods.titles[item : item + 1])).rstrip()


def item_named(text: str, goods: MarketCatalogue) -> int:
    """Find an item by its id, or by its title without regard to case.

    Raises:
        DataError: No item has that name, or several have.
    """
    names = [goods.items, tuple(title.lower() for title in goods.titles)]
    found = [[k for k, name in enumerate(names[0]) if name == text], _places(text.lower(), names[1])]
    fits = found[0] or found[1]
    if len(fits) > 1:
        raise DataError(f"{len(fits)} items have the title '{text}'; name one by its id: {goods.items[fits[0]]}, …")
    if not fits:
        raise DataError(f"the catalogue has no item '{text}'{hint(text, goods.items) or hint(text, goods.titles)}")
    return fits[0]


def _places(text: str, names: tuple[str, ...]) -> list[int]:
    return [k for k, name in enumerate(names) if name == text]


def _scores(config: RunConfig, goods: MarketCatalogue, trained: Arrays, graph: Graph, place: int) -> Floats32:
    """Return the model's scores of the graph's n items with the one at `place`."""
    options = config.options_of(TASK)
    vectors = item_features(goods, graph.items, options)
    if config.model == "paper":
        weights = graph.weights if options.adjacency == "counts" else graph.weights.sign()
        x = torch.from_numpy(propagated(weights, vectors, options.smoothing))
        shown, every = network_inputs(x, [graph], options), torch.arange(len(x))
        with torch.no_grad():
            z = embed(build_model(TASK, config.task_run(TASK, goods)), tensors(trained), shown, every).numpy()
        alike: Floats32 = similarity(z, np.array([place]), trained)[0]
        return alike
    has_text = options.features != "ids" and any(goods.text(k) for k in graph.items.tolist())
    baseline = MarketBaseline.of(
        graph, vectors if has_text else vectors[:, :0], _elsewhere(trained, graph, len(goods.items))
    )
    weighed: Floats32 = baseline.weighted_scores(np.array([place]), trained["scorer.weight"][0])[0]
    return weighed


def _elsewhere(trained: Arrays, graph: Graph, items: int) -> OtherMarketCounts:
    """Return the counts of other markets: the summed counts, less those of this market if included."""
    if KEYS not in trained:
        return OtherMarketCounts.zeros(len(graph.items))
    sums, own = {name: trained[name] for name in SUMS}, graph_counts(graph, items)
    return OtherMarketCounts.of(add_pairs([sums, own], [1.0, -1.0]) if includes(sums, own) else sums, graph.items)
