"""Items of all markets of a client as one graph, and the BPR triples of the paper's networks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import block_diag, csr_array
from torch import Tensor

from client.tasks.markets.data.graph import Graph, propagated
from common.arrays import Floats32
from common.tasks.markets.options import MarketsOptions

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
    def of(cls, graphs: Sequence[Graph], features: Sequence[Floats32], options: MarketsOptions) -> "TripleSource":
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
        place = torch.searchsorted(self.excluded, keys).clamp(max=len(self.excluded) - 1)
        return self.excluded[place] == keys
