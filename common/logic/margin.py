"""Margin of strict bounds in floating point (algorithms.md §3.3, §3.4)."""

import torch
from torch import Tensor

from common.logic.strict import STRICT


def strict_margin(bound: Tensor, dtype: torch.dtype, slack: float = STRICT) -> Tensor:
    """Return the distance between `bound` and a reading that satisfies it strictly in `dtype`.

    The distance is ε, or a few units in the last place where those exceed ε.
    """
    return (4 * torch.finfo(dtype).eps * bound.double().abs()).clamp(min=slack)
