"""BGTplanner's allocator: an arm is drawn by how far its value lies below the best (algorithms.md §4.5, Eq 12 and 13)."""

import math

import numpy as np

from server.planning.arms import FloatArray

MAX_GAP = 2.0
"""Largest gap that counts, the width of standardised rewards; every arm keeps at least 1/(K + 2γ)."""


def probabilities(values: FloatArray, gamma: float) -> FloatArray:
    """p(a) = 1/(K + γ(L(a*) − L(a))) for a ≠ a*, and the rest for a*; (K,) from (K,), positive, of sum 1.

    Args:
        values: L_t(a) of Eq 11.
        gamma: γ ≥ 0; 0 draws uniformly.
    """
    best = int(np.argmax(values))
    gaps = np.clip(values[best] - values, 0.0, MAX_GAP)
    p: FloatArray = 1 / (len(values) + gamma * gaps)
    p[best] = 0.0
    p[best] = 1 - p.sum()
    return p


def exploitation(arms: int, rounds: int, size: int) -> float:
    """γ = 2√(KT/(m ln T)).

    Args:
        arms: K.
        rounds: T; ln T of a run of one or two rounds is taken at e.
        size: m, the predictor's inputs d + 1, or N + 2 in the authors' code.
    """
    return 2 * math.sqrt(arms * rounds / (size * max(math.log(rounds), 1.0)))
