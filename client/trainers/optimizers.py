"""Optimizer steps of stacked tensors, in place.

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

    def copy(self) -> "Moments":
        """Return moments in memory of their own, in the order of their numbers."""
        return Moments(self.count.clone(), copy(self.first), copy(self.second))


Step = Callable[[Tensors, Tensors, Moments], None]
"""(parameters, direction, moments) -> None; changes moments and parameters in place.

Parameters without a direction stay.
"""


def build_step(options: LocalTraining) -> Step:
    """Return the step of the optimizer that the options name."""

    def sgd(params: Tensors, direction: Tensors, moments: Moments) -> None:
        for n, g in direction.items():
            params[n].sub_(options.rate(n) * g)

    def adam(params: Tensors, direction: Tensors, moments: Moments) -> None:
        count = moments.count.add_(1)
        if len(count) > 1 and bool((count == count[0]).all()):
            _step_fused(options, params, direction, moments)
            return
        unbias = torch.sqrt(1 - _BETA2**count)
        for n, g in direction.items():
            first = moments.first[n].lerp_(g, 1 - _BETA1)
            second = moments.second[n].mul_(_BETA2).addcmul_(g, g, value=1 - _BETA2)
            size = to_client_shape(-options.rate(n) * unbias / (1 - _BETA1**count), g)
            root = torch.sqrt(second).add_(to_client_shape(_EPSILON * unbias, g))
            params[n].addcdiv_(size * first, root)

    return sgd if options.optimizer == "sgd" else adam


def _step_fused(options: LocalTraining, params: Tensors, direction: Tensors, moments: Moments) -> None:
    """Make Adam's step of clients with equal counts in one pass; equal to the other up to rounding."""
    for n, g in direction.items():
        torch._fused_adam_(
            [params[n]],
            [g.contiguous()],
            [moments.first[n]],
            [moments.second[n]],
            [],
            [moments.count[0].float()],
            lr=options.rate(n),
            beta1=_BETA1,
            beta2=_BETA2,
            weight_decay=0.0,
            eps=_EPSILON,
            amsgrad=False,
            maximize=False,
        )


def initialize_moments(options: LocalTraining, params: Tensors, clients: int = 0) -> Moments:
    """Return the moments before the first step, for parameters K × …; `clients` is K if tables are short."""
    count = torch.zeros(
        clients or next(iter(params.values())).shape[0], dtype=torch.float64
    )  # 1 − β₂ᵗ loses four digits in float32
    if options.optimizer == "sgd":
        return Moments(count)
    zeros = {n: torch.zeros_like(p) for n, p in params.items()}
    return Moments(count, zeros, {n: torch.zeros_like(p) for n, p in params.items()})


def copy(stacked: Tensors) -> Tensors:
    """Return the tensors in memory of their own, in the order of their numbers."""
    return {n: t.clone(memory_format=torch.contiguous_format) for n, t in stacked.items()}


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
