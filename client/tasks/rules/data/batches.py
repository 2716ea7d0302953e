"""Many small homes as one padded dense batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from client.tasks.rules.data.split import SplitHome


@dataclass(frozen=True, eq=False)
class HomeBatch:
    """H homes padded to N nodes and E training examples each.

    A home's loss L_k is Σ weights · BCE over its examples, a batch's the mean of L_k over `home_mask`. With one pool of
    negatives L_k is Eq 2, the mean over E⁺ ∪ E⁻; with more, the negatives share the weight that one pool has.
    """

    x: Tensor
    """(H, N, F) float32, one-hot type of each node."""
    adj: Tensor
    """(H, N, N) float32, adj[h, v, u] = number of training rules u → v: row v counts v's in-neighbours."""
    edges: Tensor
    """(H, E, 3) int64, training rules and non-rules: trigger node, action node, relation."""
    labels: Tensor
    """(H, E) float32, 1 for rules."""
    weights: Tensor
    """(H, E) float32, summing to 1 in each home of `home_mask`; 0 where padded and in all other homes."""
    home_mask: Tensor
    """(H,) bool, homes that have a training rule."""


def collate(splits: Sequence[SplitHome], entities: int) -> HomeBatch:
    """Return one batch of all homes, `entities` = F, padded to the largest home."""
    homes, nodes = len(splits), max((len(split.home.devices) for split in splits), default=0)
    edges = max((len(split.train.positives) + len(split.train.negatives) for split in splits), default=0)
    batch = HomeBatch(
        x=torch.zeros(homes, nodes, entities),
        adj=torch.zeros(homes, nodes, nodes),
        edges=torch.zeros(homes, edges, 3, dtype=torch.int64),
        labels=torch.zeros(homes, edges),
        weights=torch.zeros(homes, edges),
        home_mask=torch.zeros(homes, dtype=torch.bool),
    )
    for h, split in enumerate(splits):
        _fill_graph_(batch, h, split)
        if len(split.train.positives):
            _fill_examples_(batch, h, split)
    return batch


def _fill_graph_(batch: HomeBatch, h: int, split: SplitHome) -> None:
    entity = torch.tensor([device.entity for device in split.home.devices], dtype=torch.int64)
    trigger, action, _ = torch.from_numpy(split.train.positives).unbind(1)
    batch.x[h, torch.arange(len(entity)), entity] = 1
    batch.adj[h].index_put_((action, trigger), torch.ones(len(trigger)), accumulate=True)


def _fill_examples_(batch: HomeBatch, h: int, split: SplitHome) -> None:
    positives, negatives = len(split.train.positives), len(split.train.negatives)
    total, one_pool = positives + negatives, min(positives, negatives)
    batch.edges[h, :positives] = torch.from_numpy(split.train.positives)
    batch.edges[h, positives:total] = torch.from_numpy(split.train.negatives)
    batch.labels[h, :positives] = 1
    batch.weights[h, :positives] = 1 / (positives + one_pool)
    batch.weights[h, positives:total] = one_pool / max(negatives, 1) / (positives + one_pool)
    batch.home_mask[h] = True
