"""Networks of the markets task with named inputs, for export."""

import numpy as np
import torch
from torch import Tensor, nn

from client.tasks.registry import ExportableNetwork
from common.arrays import Arrays, Floats32
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.pairs import COLD_FEATURES


class WeighedFeatures(nn.Module):
    """Default model: κ Σ_f w_f x_f over graph features plus (1 − κ) Σ_f w_f x_f over cold features.

    Features are added one by one in their order, as in `MarketBaseline.weighted_scores`; equal items stay equal.
    """

    def __init__(self, weight: Floats32) -> None:
        super().__init__()
        first_cold = len(weight) - len(COLD_FEATURES)
        self.weights = [float(w) for w in weight[:first_cold]], [float(w) for w in weight[first_cold:]]

    def forward(self, graph: Tensor, cold: Tensor, kappa: Tensor) -> Tensor:
        """Compute the scores of n items from both groups of features, each F × n, and κ, 1."""
        warm, new = (
            sum((w * x for w, x in zip(weights, features.unbind(0), strict=True)), torch.zeros_like(features[0]))
            for weights, features in zip(self.weights, (graph, cold), strict=True)
        )
        return kappa * warm + (1 - kappa) * new


class ItemSimilarity(nn.Module):
    """Paper's networks: inner products of one item's embedding with all."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, propagated: Tensor, query: Tensor, items: Tensor | None = None, degrees: Tensor | None = None
    ) -> Tensor:
        """Compute scores, n, from features, n × width, and the place of the query, 1.

        The embedding of SPE reads items and degrees too; see `SemiParametric.forward`.
        """
        z = self.network(propagated) if items is None else self.network(propagated, items, degrees)
        scores: Tensor = (z[query] @ z.T)[0]
        return scores


def exportable_scorer(weight: Floats32) -> ExportableNetwork:
    """Return the default model with inputs `graph`, `cold` and `kappa`; a size is a number of items."""

    def sample(size: int, rng: np.random.Generator) -> Arrays:
        rows = {"graph": len(weight) - len(COLD_FEATURES), "cold": len(COLD_FEATURES)}
        features = {name: rng.random((count, size), np.float32) for name, count in rows.items()}
        return {**features, "kappa": rng.random(1, np.float32)}

    axes = {"graph": {1: "items"}, "cold": {1: "items"}, "kappa": dict[int, str]()}
    return ExportableNetwork(WeighedFeatures(weight), axes, sample, "scores")


def exportable_network(network: nn.Module, options: MarketsOptions, items: int) -> ExportableNetwork:
    """Return a network of the paper with inputs `propagated` and `place`; a size is a number of items."""
    has_ids = options.network == "spe"

    def sample(size: int, rng: np.random.Generator) -> Arrays:
        x = rng.normal(size=(size, options.width)).astype(np.float32) / np.float32(np.sqrt(options.width))
        inputs: Arrays = {"propagated": x, "place": rng.integers(size, size=1)}
        if has_ids:
            degrees = rng.integers(20, size=size).astype(np.float32)
            inputs |= {"items": rng.integers(items, size=size), "degrees": degrees}
        return inputs

    axes = {"propagated": {0: "items"}, "place": dict[int, str]()}
    if has_ids:
        axes |= {"items": {0: "items"}, "degrees": {0: "items"}}
    return ExportableNetwork(ItemSimilarity(network), axes, sample, "scores")
