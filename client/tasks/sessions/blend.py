"""Blend of the default session model: its inputs, and its full and sampled softmax."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from client.data.partition import own_rng
from client.tasks.learner import GatheredBatch
from client.tasks.sessions.baseline import FeatureRows, ItemFeatures, VisitHistory, held_out, history_features
from client.tasks.sessions.data.visitors import SplitVisitor, cases_of
from client.training.stacks import Tensors
from common.tasks.sessions.counts import SharedRules
from common.tasks.sessions.model import blend


def features_of_split(split: SplitVisitor, part: str, shared: SharedRules | None) -> Iterator[ItemFeatures]:
    """Yield the features of every case in a part of a visitor's sessions."""
    history = VisitHistory.of(split.train)
    if part != "train":
        for case in held_out(split, part):
            yield history_features(case.prefix, history, shared)
        return
    for session in split.train:
        before = history.without(session)
        for case in cases_of(session):
            yield history_features(case.prefix, before, shared)


def blend_flags(split: SplitVisitor, share: float, seed: int) -> list[bool]:
    """Return True for each example of a session for the blend weights; sessions are drawn by (seed, name)."""
    is_drawn = own_rng(seed, f"blend of {split.visitor.name}").random(len(split.train)) < share
    return [bool(keep) for keep, session in zip(is_drawn, split.train, strict=True) for _ in session[1:]]


def pad_features(rows: FeatureRows) -> Tensors:
    """Return the tensors `index` and `value` of the features, zero-padded."""
    index, value = rows.pad()
    return {"index": torch.from_numpy(index), "value": torch.from_numpy(value)}


WEIGHTS, BLENDED, BLEND_WEIGHTS = "item_weights", "blended_examples", "blend_weights"
"""Batch tensors, padded with 0.

Weight of each gathered item, R − 1; examples that train the blend, and 1 for each of them.
"""


def own_items(batch: Tensors, features: FeatureRows) -> Tensor:
    """Return the items of training examples and of their history features, ascending."""
    clicked = [batch["nodes"][batch["nodes"] > 0].numpy() - 1, batch["target"].numpy()]
    return torch.from_numpy(np.unique(np.concatenate([*clicked, features.items])))


def gather_items(
    table: str, items: int, negatives: int, own: Tensor, batch: Tensors, generator: torch.Generator
) -> GatheredBatch:
    """Return the batch over the rows of own items and of `negatives` items drawn from the others.

    Args:
        table: Name of the item table; item j is row j + 1, and row 0 is padding.
        items: Number V of items.
        negatives: Number of items to draw without replacement, or all others if they are fewer.
        own: Own items.
        batch: Training data with `nodes`, `target` and, for the default model, `index`.
        generator: Random generator of the client's round.
    """
    is_other = torch.ones(items, dtype=torch.bool)
    is_other[own] = False
    others = is_other.nonzero().flatten()
    drawn = others[torch.randperm(len(others), generator=generator)[:negatives]]
    gathered = torch.cat([own, drawn]).sort().values
    weights = torch.where(is_other[gathered], len(others) / max(1, len(drawn)), 1.0)
    place = torch.zeros(items + 1, dtype=torch.int64)
    place[gathered + 1] = torch.arange(1, len(gathered) + 1)
    placed = {"nodes": place[batch["nodes"]], "target": place[batch["target"] + 1] - 1}
    if "index" in batch:
        placed["index"] = (place[batch["index"] + 1] - 1).clamp(min=0)  # padding may name an item that was not gathered
    rows = torch.cat([torch.zeros(1, dtype=torch.int64), gathered + 1]).numpy()
    return GatheredBatch({table: rows}, {**batch, **placed, WEIGHTS: weights})


def select_blended(batch: Tensors, features: FeatureRows) -> Tensors:
    """Return the batch with the history features of the examples that train the blend, and these examples."""
    is_blend = batch["blends"] > 0
    examples, padded = is_blend.nonzero().flatten(), pad_features(features[is_blend.numpy()])
    return {**batch, **padded, BLENDED: examples, BLEND_WEIGHTS: torch.ones(len(examples))}


def sampled_loss(network: Tensor, params: Tensors, batch: Tensors) -> Tensor:
    """Return the mean over examples of the loss, estimated from gathered items.

    Args:
        network: Logits of the network, E × (R − 1).
        params: Parameters of the model; those of the blend are used if the batch has history features.
        batch: Gathered batch.
    """
    log_weights, weights = batch[WEIGHTS].log(), batch["weights"]
    losses = _cross_entropies(network, batch["target"], log_weights)
    if BLENDED not in batch:
        return (weights * losses).sum() / weights.sum().clamp(min=1)
    of_network = (weights * (1 - batch["blends"]) * losses).sum()
    scores = network.detach().index_select(0, batch[BLENDED])
    blended = blend(params["scale"], params["weight"], scores, batch["index"], batch["value"])
    of_blend = _cross_entropies(blended, batch["target"].index_select(0, batch[BLENDED]), log_weights)
    return (of_network + (batch[BLEND_WEIGHTS] * of_blend).sum()) / weights.sum().clamp(min=1)


def _cross_entropies(logits: Tensor, target: Tensor, log_weights: Tensor) -> Tensor:
    """Return the logarithm of the weighted sum of exponentials minus the target's logit."""
    return (logits + log_weights).logsumexp(-1) - logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)
