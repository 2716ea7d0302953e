"""Baselines that count the training rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from client.tasks.rules.data.homes import SplitHome
from studies.rules.measure import Score, types_of

Triples = NDArray[np.int64]
"""Trigger type, action type, relation, E × 3: devices of one type are not distinguished."""


SMOOTHING = 0.1
"""s: added to every count; unseen combinations become unlikely, not impossible."""


@dataclass(frozen=True)
class Examples:
    """Training examples of all homes, each with weight 1 / homes / examples of the home."""

    home: Tensor
    triples: Triples
    labels: Tensor
    weights: Tensor


def examples_of(splits: Sequence[SplitHome]) -> Examples:
    """Return the examples that Eq 2 averages over, in types instead of devices."""
    homes = [split for split in splits if len(split.train.positives)]
    triples, labels, weights, owner = [], [], [], []
    for number, split in enumerate(homes):
        positives, negatives = split.train.positives, split.train.negatives
        size, types = len(positives) + len(negatives), types_of(split)
        edges = np.concatenate([positives, negatives])
        triples.append(np.column_stack([types[edges[:, 0]], types[edges[:, 1]], edges[:, 2]]))
        labels.append(np.repeat([1.0, 0.0], [len(positives), len(negatives)]))
        weights.append(np.full(size, 1 / size / len(homes)))
        owner.append(np.full(size, number))
    return Examples(
        torch.from_numpy(np.concatenate(owner)),
        np.concatenate(triples),
        torch.from_numpy(np.concatenate(labels)).float(),
        torch.from_numpy(np.concatenate(weights)).float(),
    )


def count_baseline(splits: Sequence[SplitHome], entities: int, relations: int, key: str) -> Score:
    """Return logits w·features + b, with w and b fitted to the training examples.

    Each rule is left out of its own counts.

    With ℓ = log(count + s): `counts-relation` has the one feature ℓ[r]; `counts-sides` the sum ℓ₁[trigger type, r] +
    ℓ₂[action type, r]; `counts-triple` has this sum and ℓ₃[both types, r]. `own-relation` is ℓ[r] in the home itself.
    """
    if key == "own-relation":
        return partial(_own_relation, relations)
    data = examples_of(splits)
    triple = np.zeros((entities, entities, relations))
    np.add.at(triple, tuple(data.triples[data.labels.numpy() == 1].T), 1)
    tables = _tables(triple)

    own = data.labels.numpy()
    logs = [np.log(_lookup(table, *data.triples.T) - own + SMOOTHING) for table in tables]
    weight, bias = _logistic(torch.from_numpy(np.column_stack(_features(logs, key))), data)

    def score(split: SplitHome) -> NDArray[np.floating]:
        types = types_of(split)
        place = (types[:, None, None], types[None, :, None], np.arange(relations)[None, None, :])
        logs = [np.log(_lookup(table, *place) + SMOOTHING) for table in tables]
        features = _features(logs, key)
        logits = sum(w * feature for w, feature in zip(weight, features, strict=True)) + bias
        return np.broadcast_to(logits, (len(types), len(types), relations))

    return score


def _own_relation(relations: int, split: SplitHome) -> NDArray[np.floating]:
    counts = np.bincount(split.train.positives[:, 2], minlength=relations)
    devices = len(split.home.devices)
    return np.broadcast_to(np.log(counts + SMOOTHING), (devices, devices, relations))


def _tables(triple: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """Return C, C₁, C₂, C₃, each F × F × R with length 1 where it is summed over."""
    return [triple.sum((0, 1), keepdims=True), triple.sum(1, keepdims=True), triple.sum(0, keepdims=True), triple]


def _features(logs: Sequence[NDArray[np.floating]], key: str) -> list[NDArray[np.floating]]:
    relation, trigger, action, triple = logs
    features = {
        "counts-relation": [relation],
        "counts-sides": [trigger + action],
        "counts-triple": [trigger + action, triple],
    }
    return features[key]


def _lookup(table: NDArray[np.floating], i: Triples, j: Triples, r: Triples) -> NDArray[np.floating]:
    return np.asarray(table[i if table.shape[0] > 1 else 0, j if table.shape[1] > 1 else 0, r])


def _logistic(features: Tensor, data: Examples) -> tuple[list[float], float]:
    """Return weights and bias of the least weighted cross-entropy."""
    weight = torch.zeros(features.shape[1], dtype=features.dtype, requires_grad=True)
    bias = torch.zeros((), dtype=features.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = weighted_loss(features @ weight + bias, data)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weight.tolist(), bias.item()


def weighted_loss(logits: Tensor, data: Examples) -> Tensor:
    """Return the weighted cross-entropy of the examples."""
    each = binary_cross_entropy_with_logits(logits, data.labels.to(logits.dtype), reduction="none")
    return (data.weights * each).sum()
