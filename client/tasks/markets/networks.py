"""Inputs, embeddings and triple loss of the paper's networks of the markets task."""

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from client.stacked_tensors import Tensors
from client.tasks.markets.data.graph import Graph
from common.arrays import Arrays, Floats32, Ints
from common.tasks.markets.models.losses import bpr, contrastive, logits
from common.tasks.markets.options import MarketsOptions

ITEMS, DEGREES = "items", "degrees"
INPUTS = ("propagated", ITEMS, DEGREES)
"""Names of a network's inputs, in the order of its arguments."""


def network_inputs(propagated: Tensor, graphs: Sequence[Graph], options: MarketsOptions) -> Tensors:
    """Return the inputs of all items of some graphs, n rows each.

    Without items they have one row of zeros, as stacked clients need.

    Args:
        propagated: Propagated features S^m X, n × width.
        graphs: Graphs of the items, in this order.
        options: Options of the task.
    """
    inputs = {INPUTS[0]: propagated}
    if options.network == "spe":
        degrees = [np.diff(graph.weights.indptr).astype(np.float32) for graph in graphs]
        inputs[ITEMS] = torch.from_numpy(np.concatenate([graph.items for graph in graphs]))
        inputs[DEGREES] = torch.from_numpy(np.concatenate(degrees))
    return inputs if len(propagated) else {n: t.new_zeros((1, *t.shape[1:])) for n, t in inputs.items()}


def embed(module: nn.Module, params: Tensors, inputs: Tensors, places: Tensor) -> Tensor:
    """Compute Z of the items at those places, … -> … × k.

    If there are at most as many items as places, each item is embedded once.
    """
    arguments = tuple(inputs[name] for name in INPUTS if name in inputs)
    if len(arguments[0]) <= places.numel():
        all_items: Tensor = functional_call(module, params, arguments)
        return all_items[places]
    z: Tensor = functional_call(module, params, tuple(rows[places] for rows in arguments))
    return z


def similarity(z: Floats32, queries: Ints, model: Arrays) -> Floats32:
    """Compute scores of all items, b × n: inner products, negated if θ₁ < 0 (Eq 1 permits both signs).

    Args:
        z: Embeddings, n × k.
        queries: Places of the queries among them, b.
        model: Parameters, with θ or without.
    """
    sign = -1.0 if "theta" in model and model["theta"][0] < 0 else 1.0
    scores: Floats32 = sign * (z[queries] @ z.T)
    return scores


def triple_loss(options: MarketsOptions, params: Tensors, z: Tensor) -> Tensor:
    """Compute BPR (Eq 2), or Siamese's contrastive loss, of embedded triples … × 3 × k."""
    anchor, neighbor, negative = z.unbind(-2)
    match options.network:
        case "sgc" | "spe":
            return bpr(logits(params["theta"], anchor, neighbor), logits(params["theta"], anchor, negative))
        case "siamese":
            return contrastive(anchor, neighbor, negative, options.margin)
        case _:
            assert_never(options.network)
