"""How far from a strict bound a reading must stay to be on its right side in floating point (algorithms.md §3.3, §3.4)."""

import torch
from torch import Tensor

STRICT = 1e-6
"""ε of strict predicates, in the units of the variables."""


def strict_margin(bound: Tensor, dtype: torch.dtype, slack: float = STRICT) -> Tensor:
    """Distance that keeps `bound` and a reading apart in `dtype`: ε, or a few units in the last place where ε vanishes."""
    return (4 * torch.finfo(dtype).eps * bound.double().abs()).clamp(min=slack)
