"""Closest points and L_p: pure tensor functions for torch.func.vmap and grad (FedSTL, §3.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from common.errors import ConfigError
from common.logic.clauses import Interval
from common.logic.formula import Linear
from common.logic.margin import strict_margin
from common.logic.strict import STRICT

Policy = Literal["split", "second"]
"""Variable that moves where x₁ − x₂ is bound: `split`, both by half; `second`, the second alone.

`split` is also the L2-closest point.
"""


def clamp(traces: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the closest trace with lower ≤ Y ≤ upper (template 1); shapes of traces and bounds broadcast.

    Each trace or client may have its own box. No box may be empty; a vmapped function cannot check this.
    """
    return traces.maximum(lower).minimum(upper)


def separate(x1: Tensor, x2: Tensor, bound: Tensor, policy: Policy = "split") -> tuple[Tensor, Tensor]:
    """Return the closest pair with x₁ − x₂ > bound (template 4); shapes broadcast."""
    gap = x1 - x2
    lifted = torch.where(gap > bound, gap, bound + strict_margin(bound, gap.dtype).to(gap.dtype))
    step = round_away(lifted - gap, x1.abs() + x2.abs() + lifted.abs())
    return (x1 + step / 2, x2 - step / 2) if policy == "split" else (x1, x2 - step)


def property_loss(forecast: Tensor, corrected: Tensor) -> Tensor:
    """Return L_p = mean |Ŷ − Ŷ*|; the teacher's projection Ŷ* is a constant (Eq 2).

    It is zero exactly where the forecast satisfies the property. The gradient is sign(Ŷ − Ŷ*)/n on violated readings and 0
    elsewhere.
    """
    return (forecast - corrected.detach()).abs().mean()


def round_away(step: Tensor, size: Tensor) -> Tensor:
    """Return a non-zero step lengthened by the rounding error of adding it to numbers of that size."""
    return step + 4 * torch.finfo(step.dtype).eps * size * step.sign()


def shares(axis: Linear, policy: Policy) -> dict[str, float]:
    """Return the movement of each variable per unit growth of the expression.

    Policy `split` divides it among the variables with the largest factors; `second` moves the last written variable alone.
    """
    if policy == "second":
        name, factor = axis.terms[-1]
        return {name: 1 / factor}
    largest = max(abs(factor) for _, factor in axis.terms)
    movers = [(name, factor) for name, factor in axis.terms if abs(factor) == largest]
    return {name: 1 / (len(movers) * factor) for name, factor in movers}


@dataclass(frozen=True)
class Bounds:
    """n intervals in a dtype: extreme values inside, and targets of readings outside; n each."""

    lowest: Tensor
    highest: Tensor
    low_target: Tensor
    high_target: Tensor

    @classmethod
    def of(cls, intervals: Sequence[Interval], like: Tensor) -> Self:
        """Convert intervals to tensors.

        Raises:
            ConfigError: The margins of open ends leave no value in the dtype of `like`.
        """
        ends = torch.tensor([(each.lower, each.upper) for each in intervals], dtype=torch.float64).T
        is_open = torch.tensor([(each.open_below, each.open_above) for each in intervals]).T
        outwards = ends.new_tensor([[torch.inf], [-torch.inf]])
        target = torch.where(is_open, ends + outwards.sign() * strict_margin(ends, like.dtype), ends).to(like)
        inside = torch.where(is_open, ends.to(like).nextafter(outwards.to(like)), ends.to(like))
        if bool((target[0] > target[1]).any()):
            raise ConfigError(
                f"an interval is narrower than the margin of {STRICT} or the resolution of {like.dtype}; widen it"
            )
        return cls(*inside, *target)

    def project(self, x: Tensor) -> Tensor:
        """Return the closest values inside: … x n -> … x n; values inside are unchanged."""
        return torch.where(x > self.highest, self.high_target, torch.where(x < self.lowest, self.low_target, x))
