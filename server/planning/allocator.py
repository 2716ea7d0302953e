"""BGTplanner's allocator: inverse-gap sampling of an arm (algorithms.md §4.5, Eq 12 and 13)."""

import math

import numpy as np

from common.arrays import Floats

MAX_GAP = 2.0
"""Maximum gap, the width of standardized rewards; every arm has a probability of at least 1/(K + 2γ)."""


def probabilities(values: Floats, gamma: float) -> Floats:
    """Return p(a) = 1/(K + γ(L(a*) − L(a))) for a ≠ a*, and the rest for a*; (K,), positive, of sum 1.

    Args:
        values: L_t(a) of Eq 11, (K,).
        gamma: γ ≥ 0; 0 is the uniform distribution.
    """
    best = int(np.argmax(values))
    gaps = np.clip(values[best] - values, 0.0, MAX_GAP)
    p: Floats = 1 / (len(values) + gamma * gaps)
    p[best] = 0.0
    p[best] = 1 - p.sum()
    return p


def exploitation(arms: int, rounds: int, size: int) -> float:
    """Return γ = 2√(KT/(m ln T)).

    Args:
        arms: Number K of arms.
        rounds: Number T of rounds; ln T is at least 1.
        size: m: the number d + 1 of the predictor's inputs, or N + 2 as in the authors' code.
    """
    return 2 * math.sqrt(arms * rounds / (size * max(math.log(rounds), 1.0)))
