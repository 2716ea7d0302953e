"""Inputs, embeddings, triples and triple loss of the paper's networks of the markets task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np
import torch
from scipy.sparse import block_diag, csr_array

from client.tasks.markets.data.graph import Graph, propagated
from client.training.stacks import Tensors
from common.arrays import Floats32
from common.tasks.markets.options import MarketsOptions

if TYPE_CHECKING:
    from torch import Tensor, nn

ITEMS, DEGREES, EDGES, EDGE_WEIGHTS = "items", "degrees", "edge_index", "edge_weight"
INPUTS = ("propagated", ITEMS, DEGREES, EDGES, EDGE_WEIGHTS)
"""Names of a network's inputs, in the order of its arguments."""


def network_inputs(
    propagated: Tensor, graphs: Sequence[Graph], options: MarketsOptions, *, has_edges: bool = False
) -> Tensors:
    """Return the inputs of all items of some graphs, n rows each.

    Without items they have one row of zeros, as stacked clients need.

    Args:
        propagated: Propagated features S^m X, n × width; the features themselves for networks of packages.
        graphs: Graphs of the items, in this order.
        options: Options of the task.
        has_edges: True for networks of packages, which propagate features themselves.
    """
    if has_edges:
        return _with_edges(propagated, graphs, options)
    inputs = {INPUTS[0]: propagated}
    if options.network == "spe":
        degrees = [np.diff(graph.weights.indptr).astype(np.float32) for graph in graphs]
        inputs[ITEMS] = torch.from_numpy(np.concatenate([graph.items for graph in graphs]))
        inputs[DEGREES] = torch.from_numpy(np.concatenate(degrees))
    return inputs if len(propagated) else {n: t.new_zeros((1, *t.shape[1:])) for n, t in inputs.items()}


def _with_edges(x: Tensor, graphs: Sequence[Graph], options: MarketsOptions) -> Tensors:
    """Return features n × width, with the edges of all graphs, 2 × E, and their weights, E."""
    weights = [graph.weights if options.adjacency == "counts" else graph.weights.sign() for graph in graphs]
    whole = block_diag(weights, format="coo") if weights else csr_array((0, 0)).tocoo()
    edges = torch.from_numpy(np.stack([whole.row, whole.col]).astype(np.int64))
    x = x if len(x) else x.new_zeros((1, x.shape[1]))
    return {INPUTS[0]: x, EDGES: edges, EDGE_WEIGHTS: torch.from_numpy(whole.data.astype(np.float32))}


def embed(module: nn.Module, params: Tensors, inputs: Tensors, places: Tensor) -> Tensor:
    """Compute Z of the items at those places, … -> … × k.

    If there are at most as many items as places, each item is embedded once.
    """
    arguments = tuple(inputs[name] for name in INPUTS if name in inputs)
    if EDGES in inputs or len(arguments[0]) <= places.numel():
        all_items: Tensor = torch.func.functional_call(module, params, arguments)
        return all_items[places]
    z: Tensor = torch.func.functional_call(module, params, tuple(rows[places] for rows in arguments))
    return z


def triple_loss(options: MarketsOptions, params: Tensors, z: Tensor) -> Tensor:
    """Compute BPR (Eq 2), or Siamese's contrastive loss, of embedded triples … × 3 × k."""
    from common.tasks.markets.losses import bpr, contrastive, logits

    anchor, neighbor, negative = z.unbind(-2)
    match options.network:
        case "sgc" | "spe":
            theta = params["theta"] if "theta" in params else torch.tensor([1.0, 0.0])
            return bpr(logits(theta, anchor, neighbor), logits(theta, anchor, negative))
        case "siamese":
            return contrastive(anchor, neighbor, negative, options.margin)
        case _:
            assert_never(options.network)


MAX_DRAWS = 64
"""Maximum number of draws of a negative; an anchor without success counts as a neighbor of all items."""


@dataclass(frozen=True, eq=False)
class TripleSource:
    """The n items of all markets of a client, with a sampler of BPR triples.

    Args:
        features: Item features X, n × width.
        propagated: Propagated features S^m X, n × width.
        pairs: Training pairs, a < b, E × 2.
        market_start: Index of the first item of each item's market, n.
        market_size: Number of items of each item's market, n.
        excluded: Keys a·n + b of pairs that are not negatives, sorted: neighbors and the item itself.
        batch: Number B of triples per step.
    """

    features: Tensor
    propagated: Tensor
    pairs: Tensor
    market_start: Tensor
    market_size: Tensor
    excluded: Tensor
    batch: int

    @classmethod
    def of(cls, graphs: Sequence[Graph], features: Sequence[Floats32], options: MarketsOptions) -> TripleSource:
        """Join graphs; no edge connects two markets."""
        weights = [graph.weights if options.adjacency == "counts" else graph.weights.sign() for graph in graphs]
        smooth = [propagated(w, x, options.smoothing) for w, x in zip(weights, features, strict=True)]
        sizes = np.array([len(graph.items) for graph in graphs])
        offsets = np.cumsum(sizes) - sizes
        pairs = [graph.edges + offset for graph, offset in zip(graphs, offsets, strict=True)]
        whole, n = csr_array(block_diag(weights, format="csr")), int(sizes.sum())
        rows, columns = whole.nonzero()
        excluded = np.union1d(rows.astype(np.int64) * n + columns, np.arange(n) * (n + 1))
        return cls(
            torch.from_numpy(np.concatenate(features)),
            torch.from_numpy(np.concatenate(smooth)),
            torch.from_numpy(np.concatenate(pairs)),
            torch.from_numpy(np.repeat(offsets, sizes)),
            torch.from_numpy(np.repeat(sizes, sizes)),
            torch.from_numpy(excluded),
            options.batch,
        )

    def triples(self, generator: torch.Generator) -> Tensor:
        """Draw triples (anchor, neighbor, negative), B × 3.

        Pairs are uniform with replacement, in either direction. The negative is uniform among the items of the anchor's market
        except its neighbors and itself. If there is none, the negative is the neighbor, and the triple has no gradient. All
        triples are zeros if there are no pairs.
        """
        if not len(self.pairs):
            return torch.zeros((self.batch, 3), dtype=torch.int64)
        pairs = self.pairs[torch.randint(len(self.pairs), (self.batch,), generator=generator)]
        turned = torch.rand(self.batch, generator=generator) < 0.5
        pairs = torch.where(turned[:, None], pairs.flip(1), pairs)
        return torch.column_stack([pairs, self._draw_negatives(pairs, generator)])

    def _draw_negatives(self, chosen: Tensor, generator: torch.Generator) -> Tensor:
        anchor, negatives = chosen[:, 0], chosen[:, 1].clone()
        is_missing = torch.ones(len(anchor), dtype=torch.bool)
        for _ in range(MAX_DRAWS):
            uniform = torch.rand(len(anchor), generator=generator, dtype=torch.float64)
            guess = self.market_start[anchor] + (uniform * self.market_size[anchor]).long()
            is_found = is_missing & ~self._is_excluded(anchor, guess)
            negatives[is_found] = guess[is_found]
            is_missing = is_missing & ~is_found
            if not is_missing.any():
                break
        return negatives

    def _is_excluded(self, anchor: Tensor, negative: Tensor) -> Tensor:
        keys = anchor * len(self.features) + negative
        nearest = torch.searchsorted(self.excluded, keys).clamp(max=len(self.excluded) - 1)
        return self.excluded[nearest] == keys
