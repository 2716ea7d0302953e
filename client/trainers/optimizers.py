"""Optimizer steps as pure functions of stacked tensors.

All operations are element-wise, so the same code steps one client or a cohort stacked along dimension 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from client.stacked_tensors import Tensors
from common.methods.local_training import LocalTraining

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Kingma & Ba 2015


@dataclass(frozen=True)
class Moments:
    """Moments of Adam; empty under SGD.

    Args:
        count: Number of steps so far of each client, (K,).
        first: First moments, K × ….
        second: Second moments, K × ….
    """

    count: Tensor
    first: Tensors = field(default_factory=dict)
    second: Tensors = field(default_factory=dict)


Step = Callable[[Tensors, Tensors, Moments], tuple[Tensors, Moments]]
"""(parameters, direction, moments) -> (parameters, moments)."""


def build_step(options: LocalTraining) -> Step:
    """Return the step of the optimizer that the options name."""

    def sgd(params: Tensors, direction: Tensors, moments: Moments) -> tuple[Tensors, Moments]:
        return {n: p - options.rate(n) * direction[n] for n, p in params.items()}, moments

    def adam(params: Tensors, direction: Tensors, moments: Moments) -> tuple[Tensors, Moments]:
        count = moments.count + 1
        unbias = torch.sqrt(1 - _BETA2**count)
        first = {n: torch.lerp(moments.first[n], g, 1 - _BETA1) for n, g in direction.items()}
        second = {n: (_BETA2 * moments.second[n]).addcmul_(g, g, value=1 - _BETA2) for n, g in direction.items()}
        stepped = {}
        for n, p in params.items():
            size = to_client_shape(-options.rate(n) * unbias / (1 - _BETA1**count), p)
            root = torch.sqrt(second[n]).add_(to_client_shape(_EPSILON * unbias, p))
            stepped[n] = torch.addcdiv(p, size * first[n], root)
        return stepped, Moments(count, first, second)

    return sgd if options.optimizer == "sgd" else adam


def initialize_moments(options: LocalTraining, params: Tensors) -> Moments:
    """Return the moments before the first step, for parameters stacked K × …."""
    clients = next(iter(params.values())).shape[0]
    count = torch.zeros(clients, dtype=torch.float64)  # 1 − β₂ᵗ loses four digits in float32
    if options.optimizer == "sgd":
        return Moments(count)
    zeros = {n: torch.zeros_like(p) for n, p in params.items()}
    return Moments(count, zeros, {n: torch.zeros_like(p) for n, p in params.items()})


def clip(direction: Tensors, max_norm: float) -> Tensors:
    """Scale each client's gradient to an L2 norm of at most `max_norm`; 0: no clipping."""
    if max_norm == 0:
        return direction
    squares = [direction[n].flatten(1).square().sum(1) for n in sorted(direction)]  # decoded models have any order
    norms = torch.stack(squares).sum(0).sqrt()
    factor = torch.clamp(max_norm / norms.clamp(min=torch.finfo(norms.dtype).tiny), max=1.0)
    return {n: g * to_client_shape(factor, g) for n, g in direction.items()}


def to_client_shape(numbers: Tensor, like: Tensor) -> Tensor:
    """Return numbers (K,) in the dtype of `like` and in a shape that broadcasts to K × …."""
    return numbers.to(like.dtype).reshape(-1, *[1] * (like.dim() - 1))
