"""What the networks of the markets task are told of a client's items, and what they learn from triples."""

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from client.stacked_tensors import Tensors
from client.tasks.markets.data.graph import Graph
from common.arrays import Arrays
from common.tasks.markets.models.losses import bpr, contrastive, logits
from common.tasks.markets.options import MarketsOptions

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]

ITEMS, DEGREES = "items", "degrees"
INPUTS = ("propagated", ITEMS, DEGREES)
"""What a network may be told, in the order of its arguments."""


def inputs(propagated: Tensor, graphs: Sequence[Graph], options: MarketsOptions) -> Tensors:
    """Of all items of some graphs, n rows each; one row of zeros where there is none, so that clients can be stacked.

    Args:
        propagated: S^m X, n × width.
        graphs: Whose items these are, in this order.
        options: The task's options.
    """
    told = {INPUTS[0]: propagated}
    if options.network == "spe":
        degrees = [np.diff(graph.weights.indptr).astype(np.float32) for graph in graphs]
        told[ITEMS] = torch.from_numpy(np.concatenate([graph.items for graph in graphs]))
        told[DEGREES] = torch.from_numpy(np.concatenate(degrees))
    return told if len(propagated) else {n: t.new_zeros((1, *t.shape[1:])) for n, t in told.items()}


def embedded(module: nn.Module, params: Tensors, told: Tensors, places: Tensor) -> Tensor:
    """Z of the items in those places, … -> … × k; of each item once where there are no more items than places."""
    known = tuple(told[name] for name in INPUTS if name in told)
    if len(known[0]) <= places.numel():
        every: Tensor = functional_call(module, params, known)
        return every[places]
    z: Tensor = functional_call(module, params, tuple(rows[places] for rows in known))
    return z


def likeness(z: Vectors, queries: Places, model: Arrays) -> Vectors:
    """Scores of all items, b × n: inner products, turned round where θ₁ is negative, since Eq 1 may learn either.

    Args:
        z: Embeddings, n × k.
        queries: b places among them.
        model: May hold θ.
    """
    towards = -1.0 if "theta" in model and model["theta"][0] < 0 else 1.0
    scores: Vectors = towards * (z[queries] @ z.T)
    return scores


def triple_loss(options: MarketsOptions, params: Tensors, z: Tensor) -> Tensor:
    """BPR (Eq 2), or Siamese's contrastive loss, of embedded triples … × 3 × k."""
    anchor, neighbour, other = z.unbind(-2)
    match options.network:
        case "sgc" | "spe":
            return bpr(logits(params["theta"], anchor, neighbour), logits(params["theta"], anchor, other))
        case "siamese":
            return contrastive(anchor, neighbour, other, options.margin)
        case _:
            assert_never(options.network)
