"""The noise that the local steps of a round carry under DP-SGD."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class DpSgdNoise:
    """One client's, as agreed for one round."""

    clip: float
    """C, the largest norm of a record's gradient."""
    multiplier: float
    """z: a step's sum of gradients gets noise of standard deviation zC."""
    sample: float
    """q, the probability with which a record joins a step."""
    generator: Callable[[], np.random.Generator]
    """Where the noise comes from."""


def secret_generator(noise: DpSgdNoise) -> torch.Generator:
    """Where dropout masks come from beside that noise.

    Who knew their seed would know every record's mask; and since a mask's place depends on how many records there are, one
    record less would change the others' gradients too. Drawn in secret they tell nothing of who else is there.
    """
    return torch.Generator().manual_seed(int(noise.generator().integers(2**63)))
