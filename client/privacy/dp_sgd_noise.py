"""Noise of local steps under DP-SGD, unit `record`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class DpSgdNoise:
    """DP-SGD noise of one client in one round."""

    clip: float
    """Maximum norm C of a record's gradient."""
    multiplier: float
    """Noise multiplier z: the noise on a step's sum of gradients has the standard deviation zC."""
    sample: float
    """Probability q with which a record joins a step."""
    generator: Callable[[], np.random.Generator]
    """Factory of the random generator for DP noise; cryptographically seeded outside simulations."""


def secret_generator(noise: DpSgdNoise) -> torch.Generator:
    """Return the generator of dropout masks under DP-SGD, secretly seeded.

    A known seed would reveal every record's mask. A mask's place depends on the number of records, so one record less would
    change the gradients of the remaining records too. Secret masks reveal nothing about the other records.
    """
    return torch.Generator().manual_seed(int(noise.generator().integers(2**63)))
