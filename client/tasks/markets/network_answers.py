"""Related items by an exported network: its inputs and the list, without torch."""

import numpy as np

from client.inference.network import Network
from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.graph import Graph
from client.tasks.markets.data.markets import Market
from client.tasks.markets.inference import Companion, list_companions, market_baseline, smooth_features
from client.tasks.markets.shrinkage import FULL_WEIGHT, shrinkage_weight
from common.arrays import Arrays, Floats32
from common.config.run import RunConfig
from common.tasks.markets.features import COLD_FEATURES, GRAPH_FEATURES
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue


def companions_by(
    network: Network, config: RunConfig, goods: MarketCatalogue, statics: Arrays, market: Market, item: int, top: int
) -> list[Companion]:
    """Return the items that `companions` returns, by an exported network."""

    def score(graph: Graph, place: int) -> Floats32:
        if config.model == "paper":
            inputs = paper_inputs(config, goods, graph, place)
        else:
            inputs = scorer_inputs(market_baseline(config, goods, statics, graph), place)
        scores: Floats32 = network(inputs)
        return scores

    return list_companions(config, goods, statics, market, item, top, score)


def scorer_inputs(baseline: MarketBaseline, place: int) -> Arrays:
    """Return both groups of features of all n items with one, and the shrinkage weight κ of their sum."""
    query, n = np.array([place]), len(baseline.degree)
    kappa = shrinkage_weight(baseline.degree[query], baseline.reach)
    graph, cold = np.zeros((len(GRAPH_FEATURES), n), np.float32), np.zeros((len(COLD_FEATURES), n), np.float32)
    if kappa[0] > 0:
        graph[:] = [x[0] for x in baseline.graph_features(query)]
    if kappa[0] < FULL_WEIGHT:
        cold[:] = [x[0] for x in baseline.cold_features(query)]
    return {"graph": graph, "cold": cold, "kappa": kappa}


def paper_inputs(config: RunConfig, goods: MarketCatalogue, graph: Graph, place: int) -> Arrays:
    """Return the propagated features of the n items and the place of the query among them."""
    inputs = {"propagated": smooth_features(config, goods, graph), "place": np.array([place])}
    if config.options_of(TASK).network == "spe":
        inputs |= {"items": graph.items, "degrees": np.diff(graph.weights.indptr).astype(np.float32)}
    return inputs
