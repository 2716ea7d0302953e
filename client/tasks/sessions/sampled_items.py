"""Sampled softmax over a client's own items and uniformly drawn others (DECISIONS 145).

The sum of exponentials over all items is estimated without bias by the exact sum over own items plus the sum over the drawn
ones, each weighted by 1/(its probability to be drawn).
"""

import torch
from torch import Tensor

from client.stacked_tensors import Tensors
from client.tasks.gathered_rows import GatheredBatch

WEIGHTS = "item_weights"
"""Name of the batch tensor of each gathered item's weight in the softmax, R − 1; 0 for padding."""


def gather_items(table: str, items: int, negatives: int, batch: Tensors, generator: torch.Generator) -> GatheredBatch:
    """Return the batch over the rows of own items and of `negatives` items drawn from the others.

    Args:
        table: Name of the item table; item j is row j + 1, and row 0 is padding.
        items: Number V of items.
        negatives: Number of items to draw without replacement, or all others if they are fewer.
        batch: Training data with `nodes`, `target` and, for the default model, `index` and `value`.
        generator: Random generator of the client's round.
    """
    has_features = (batch["value"] > 0).any(-1) if "value" in batch else torch.zeros(0, dtype=torch.bool)
    featured = batch["index"][has_features] if "index" in batch else batch["target"][:0]
    is_own = torch.zeros(items + 1, dtype=torch.bool)
    is_own[0] = True
    for rows in (batch["nodes"], batch["target"] + 1, featured + 1):
        is_own[rows] = True
    others = (~is_own).nonzero().flatten()
    drawn = others[torch.randperm(len(others), generator=generator)[:negatives]]
    rows = torch.cat([is_own.nonzero().flatten(), drawn]).sort().values
    weights = torch.where(is_own[rows], 1.0, len(others) / max(1, len(drawn)))[1:]
    placed = {"nodes": torch.searchsorted(rows, batch["nodes"]), "target": _place(rows, batch["target"])}
    if "index" in batch:
        placed["index"] = torch.where(has_features, _place(rows, batch["index"]), 0)
    return GatheredBatch({table: rows.numpy()}, {**batch, **placed, WEIGHTS: weights})


def add_weights(logits: Tensor, batch: Tensors) -> Tensor:
    """Return logits plus the logarithm of each item's weight; −∞ for padding. Unchanged without weights."""
    return logits + batch[WEIGHTS].log() if WEIGHTS in batch else logits


def _place(rows: Tensor, items: Tensor) -> Tensor:
    """Return the place of items among the gathered ones."""
    return torch.searchsorted(rows, items + 1) - 1
