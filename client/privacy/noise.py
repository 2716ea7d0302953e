"""The noise that the local steps of a round carry under DP-SGD."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Noise:
    """One client's, as agreed for one round."""

    clip: float
    """C, the largest norm of a record's gradient."""
    multiplier: float
    """z: a step's sum of gradients gets noise of standard deviation zC."""
    sample: float
    """q, the probability with which a record joins a step."""
    generator: Callable[[], np.random.Generator]
    """Where the noise comes from."""
