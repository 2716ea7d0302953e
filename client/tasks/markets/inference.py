"""From a finished model to the items that may go with one; on the client, from its own market."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.counts import graph_counts
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import Graph, graph_of, propagated
from client.tasks.markets.data.markets import Market
from client.tasks.markets.networks import embed, network_inputs, similarity
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import DataError
from common.models import build_model, tensors
from common.options import hint
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, OtherMarketCounts, add_pairs, includes
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue

Vectors = NDArray[np.float32]

SUMS = (KEYS, VALUES, DEGREES)


@dataclass(frozen=True)
class Companion:
    """An item to show beside another."""

    item: str
    title: str
    """Empty where the catalogue has none."""
    score: float
    """The model's; a ranking, not a probability."""

    @property
    def label(self) -> str:
        """As a person reads it."""
        return f"{self.item} {self.title}".rstrip()


def companions(
    config: RunConfig, goods: MarketCatalogue, trained: Arrays, market: Market, item: int, top: int
) -> list[Companion]:
    """The `top` items of a market that go best with one and are not known to go with it yet, best first.

    Of all items that the market names, also those without a pair, and of an item that is not sold there so far: what other
    markets know of them then counts, where counts are shared.

    Args:
        config: The run.
        goods: The catalogue.
        trained: The finished model, with the sums over markets where there are any.
        market: The market, whole.
        item: Number in the catalogue.
        top: How many.
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
    """An item's id, and its title where it has one."""
    return " ".join((goods.items[item], *goods.titles[item : item + 1])).rstrip()


def item_named(text: str, goods: MarketCatalogue) -> int:
    """An item by its id or by its title, whatever the case.

    Raises:
        DataError: No item is called so, or several are.
    """
    names = [goods.items, tuple(title.lower() for title in goods.titles)]
    found = [[k for k, name in enumerate(names[0]) if name == text], _places(text.lower(), names[1])]
    fits = found[0] or found[1]
    if len(fits) > 1:
        raise DataError(f"{len(fits)} items are called '{text}'; name one by its id: {goods.items[fits[0]]}, …")
    if not fits:
        raise DataError(f"the catalogue has no item '{text}'{hint(text, goods.items) or hint(text, goods.titles)}")
    return fits[0]


def _places(text: str, names: tuple[str, ...]) -> list[int]:
    return [k for k, name in enumerate(names) if name == text]


def _scores(config: RunConfig, goods: MarketCatalogue, trained: Arrays, graph: Graph, place: int) -> Vectors:
    """The model's scores of all the graph's items beside the one at `place`, n."""
    options = config.options_of(TASK)
    vectors = item_features(goods, graph.items, options)
    if config.model == "paper":
        weights = graph.weights if options.adjacency == "counts" else graph.weights.sign()
        x = torch.from_numpy(propagated(weights, vectors, options.smoothing))
        shown, every = network_inputs(x, [graph], options), torch.arange(len(x))
        with torch.no_grad():
            z = embed(build_model(TASK, config.task_run(TASK, goods)), tensors(trained), shown, every).numpy()
        alike: Vectors = similarity(z, np.array([place]), trained)[0]
        return alike
    told = options.features != "ids" and any(goods.text(k) for k in graph.items.tolist())
    line = MarketBaseline.of(graph, vectors if told else vectors[:, :0], _elsewhere(trained, graph, len(goods.items)))
    weighed: Vectors = line.weighted_scores(np.array([place]), trained["scorer.weight"][0])[0]
    return weighed


def _elsewhere(trained: Arrays, graph: Graph, items: int) -> OtherMarketCounts:
    """What other markets say; where this one's counts are part of the sums in clear, without them."""
    if KEYS not in trained:
        return OtherMarketCounts.zeros(len(graph.items))
    sums, own = {name: trained[name] for name in SUMS}, graph_counts(graph, items)
    return OtherMarketCounts.of(add_pairs([sums, own], [1.0, -1.0]) if includes(sums, own) else sums, graph.items)
