"""Closest points and L_p: pure tensor functions that also run under torch.func.vmap and grad (FedSTL, algorithms.md §3.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from common.errors import ConfigError
from common.logic.clauses import Interval
from common.logic.formula import Linear
from common.logic.margin import STRICT, strict_margin

Policy = Literal["split", "second"]
"""Who gives way where x₁ − x₂ is bound: half by each (also the L2-closest), or the second alone."""


def clamped(traces: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """The closest trace with lower ≤ Y ≤ upper (template 1); traces and bounds of shapes that broadcast.

    So a trace or a client may have a box of its own. No box may be empty, which a vmapped function cannot ask.
    """
    return traces.maximum(lower).minimum(upper)


def parted(x1: Tensor, x2: Tensor, bound: Tensor, policy: Policy = "split") -> tuple[Tensor, Tensor]:
    """The closest pair with x₁ − x₂ > bound (template 4); shapes broadcast."""
    gap = x1 - x2
    lifted = torch.where(gap > bound, gap, bound + strict_margin(bound, gap.dtype).to(gap.dtype))
    step = rounded_away(lifted - gap, x1.abs() + x2.abs() + lifted.abs())
    return (x1 + step / 2, x2 - step / 2) if policy == "split" else (x1, x2 - step)


def property_loss(forecast: Tensor, corrected: Tensor) -> Tensor:
    """L_p = mean |Ŷ − Ŷ*|, the teacher's answer a constant (Eq 2).

    Zero exactly where the forecast obeys; the gradient is sign(Ŷ − Ŷ*)/n on violated readings and 0 elsewhere.
    """
    return (forecast - corrected.detach()).abs().mean()


def rounded_away(step: Tensor, size: Tensor) -> Tensor:
    """A step made longer, where it is not 0, by what adding it to numbers of that size may lose to rounding."""
    return step + 4 * torch.finfo(step.dtype).eps * size * step.sign()


def shares(axis: Linear, policy: Policy) -> dict[str, float]:
    """How far each variable moves as the expression grows by 1: the largest factors share, or the last written moves alone."""
    if policy == "second":
        name, factor = axis.terms[-1]
        return {name: 1 / factor}
    largest = max(abs(factor) for _, factor in axis.terms)
    movers = [(name, factor) for name, factor in axis.terms if abs(factor) == largest]
    return {name: 1 / (len(movers) * factor) for name, factor in movers}


@dataclass(frozen=True)
class Bounds:
    """n intervals in a dtype: the extreme values inside, and those that readings outside are moved to; each n."""

    lowest: Tensor
    highest: Tensor
    low_target: Tensor
    high_target: Tensor

    @classmethod
    def of(cls, intervals: Sequence[Interval], like: Tensor) -> Self:
        """Intervals as tensors; raises ConfigError where the margins of open ends leave no value in the dtype of `like`."""
        ends = torch.tensor([(each.lower, each.upper) for each in intervals], dtype=torch.float64).T
        is_open = torch.tensor([(each.open_below, each.open_above) for each in intervals]).T
        outwards = ends.new_tensor([[torch.inf], [-torch.inf]])
        target = torch.where(is_open, ends + outwards.sign() * strict_margin(ends, like.dtype), ends).to(like)
        inside = torch.where(is_open, ends.to(like).nextafter(outwards.to(like)), ends.to(like))
        if bool((target[0] > target[1]).any()):
            raise ConfigError(
                f"an interval is narrower than the margin of {STRICT} (or than {like.dtype} can tell); widen it"
            )
        return cls(*inside, *target)

    def project(self, x: Tensor) -> Tensor:
        """The closest values inside: … x n -> … x n; what is inside stays."""
        return torch.where(x > self.highest, self.high_target, torch.where(x < self.lowest, self.low_target, x))
