"""A client's markets side by side as the paper's networks see them, and the triples that BPR is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array
from torch import Tensor

from client.tasks.markets.data.graph import Graph, propagated
from common.tasks.markets.options import MarketsOptions

TRIES = 64
"""Draws of a negative before an anchor counts as a neighbour of everything."""


@dataclass(frozen=True, eq=False)
class TripleSource:
    """n items of all the client's markets.

    Args:
        features: X, n × width.
        propagated: S^m X, n × width.
        pairs: Training pairs, E × 2, a < b.
        first: Place of the first item of each item's market, n.
        sold: Items of each item's market, n.
        taken: Keys a·n + b of pairs that are no negatives, sorted: neighbours and the item itself.
        batch: B.
    """

    features: Tensor
    propagated: Tensor
    pairs: Tensor
    first: Tensor
    sold: Tensor
    taken: Tensor
    batch: int

    @classmethod
    def of(
        cls, graphs: Sequence[Graph], features: Sequence[NDArray[np.float32]], options: MarketsOptions
    ) -> "TripleSource":
        """Join graphs; an edge never leads from one market into another."""
        weights = [graph.weights if options.adjacency == "counts" else graph.weights.sign() for graph in graphs]
        smooth = [propagated(w, x, options.smoothing) for w, x in zip(weights, features, strict=True)]
        sizes = np.array([len(graph.items) for graph in graphs])
        offsets = np.cumsum(sizes) - sizes
        pairs = [graph.edges + offset for graph, offset in zip(graphs, offsets, strict=True)]
        whole, n = csr_array(block_diag(weights, format="csr")), int(sizes.sum())
        rows, columns = whole.nonzero()
        taken = np.union1d(rows.astype(np.int64) * n + columns, np.arange(n) * (n + 1))
        return cls(
            torch.from_numpy(np.concatenate(features)),
            torch.from_numpy(np.concatenate(smooth)),
            torch.from_numpy(np.concatenate(pairs)),
            torch.from_numpy(np.repeat(offsets, sizes)),
            torch.from_numpy(np.repeat(sizes, sizes)),
            torch.from_numpy(taken),
            options.batch,
        )

    def draw(self, generator: torch.Generator) -> Tensor:
        """Triples (anchor, neighbour, other), B × 3: pairs uniform with replacement, either way round.

        The other is uniform among the anchor's market without its neighbours and itself. Where there is none it is the
        neighbour again, which BPR learns nothing from; so is all of a market without pairs.
        """
        if not len(self.pairs):
            return torch.zeros((self.batch, 3), dtype=torch.int64)
        chosen = self.pairs[torch.randint(len(self.pairs), (self.batch,), generator=generator)]
        turned = torch.rand(self.batch, generator=generator) < 0.5
        chosen = torch.where(turned[:, None], chosen.flip(1), chosen)
        return torch.column_stack([chosen, self._others(chosen, generator)])

    def _others(self, chosen: Tensor, generator: torch.Generator) -> Tensor:
        anchor, others = chosen[:, 0], chosen[:, 1].clone()
        missing = torch.ones(len(anchor), dtype=torch.bool)
        for _ in range(TRIES):
            drawn = torch.rand(len(anchor), generator=generator, dtype=torch.float64)
            guess = self.first[anchor] + (drawn * self.sold[anchor]).long()
            fits = missing & ~self._is_taken(anchor, guess)
            others[fits] = guess[fits]
            missing = missing & ~fits
            if not missing.any():
                break
        return others

    def _is_taken(self, anchor: Tensor, other: Tensor) -> Tensor:
        keys = anchor * len(self.features) + other
        place = torch.searchsorted(self.taken, keys).clamp(max=len(self.taken) - 1)
        return self.taken[place] == keys
