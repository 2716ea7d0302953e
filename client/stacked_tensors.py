"""Tensors of several clients, stacked along a new dimension 0."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from common.arrays import Array, Arrays

Tensors = dict[str, Tensor]
"""Tensors by parameter name."""

T = TypeVar("T", Tensor, Array)


def stack(members: Sequence[Tensors]) -> Tensors:
    """Stack along a new dimension 0; every tensor is zero-padded to the largest of its name."""
    return {name: _stack_padded([m[name] for m in members]) for name in members[0]}


def at(stacked: Mapping[str, T], k: int) -> dict[str, T]:
    """Return views of client k's tensors or arrays."""
    return {n: t[k] for n, t in stacked.items()}


def to_arrays(tensors: Tensors) -> Arrays:
    """Return the tensors as arrays in the same memory."""
    return {n: t.numpy() for n, t in tensors.items()}


def row(stacked: Tensors, k: int) -> Tensors:
    """Return a copy of client k's tensors, which does not keep the whole cohort in memory."""
    return {n: t[k].clone() for n, t in stacked.items()}


def select(tensors: Tensors, names: Collection[str]) -> Tensors:
    """Return the tensors of those names."""
    return {n: t for n, t in tensors.items() if n in names}


def are_finite(updates: Tensors) -> list[bool]:
    """Return True for each client whose update has neither NaN nor infinity.

    Finite sums have finite terms. Terms of other sums, which may have overflowed, are examined one by one.
    """
    if torch.stack([u.flatten(1).sum(1) for u in updates.values()]).isfinite().all():
        return [True] * len(next(iter(updates.values())))
    finite: list[bool] = torch.stack([u.isfinite().flatten(1).all(1) for u in updates.values()]).all(0).tolist()
    return finite


def _stack_padded(members: Sequence[Tensor]) -> Tensor:
    shapes = {m.shape for m in members}
    if len(shapes) == 1:
        return torch.stack(list(members))
    size = [max(lengths) for lengths in zip(*shapes, strict=True)]
    stacked = members[0].new_zeros((len(members), *size))
    for k, member in enumerate(members):
        stacked[k][tuple(slice(0, length) for length in member.shape)] = member
    return stacked


def cross_entropies(logits: Tensor, targets: Tensor) -> Tensor:
    """Return −log softmax of N × M logits at N targets.

    PyTorch's `cross_entropy` gives the same, but imports SymPy under `vmap`, which takes 19 MB of a client.
    """
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
