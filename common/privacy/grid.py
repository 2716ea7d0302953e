"""Noise of one client's own on a grid of integers: clip, random rounding, exact discrete noise.

A vector of norm C becomes integers of norm at most c, whatever the rounding. The noise is drawn by the sampler of secure sums.
The sum of both is an integer, so the arithmetic of floats has no part in the guarantee. The result is multiplied by C/c.
"""

import math
from fractions import Fraction

import numpy as np

from common.arrays import Floats, Ints
from common.errors import RefusedError
from common.privacy.vectors import clip
from common.secure.noise import Stream, discrete_gaussian, discrete_laplace
from common.secure.quantisation import integer_clip, noise_scale, quantise, round_randomly

SCALE = 2**23
"""Largest scale of the noise in steps of the grid, which the sampler draws fast."""

MOST_STEPS = 2**30
"""Largest c, whose square is exact."""

DEVIATIONS = 2.5
"""Number of √d by which the expected absolute sum stays below c, so that rounding rarely exceeds it."""

_MARGIN = Fraction(1, 10**12)
"""Relative excess of t, for the rounding of b."""

_SUMMING = 1e-9
"""Relative excess of a sum's norm, for the rounding of float64."""

_DRAWS = 20
"""Attempts at a rounding of absolute sum c, before truncation."""


def steps_of(ratio: float, size: int) -> int:
    """Return c, a power of two: as large as noise of that ratio to c can be drawn.

    Args:
        ratio: Scale of the noise over c.
        size: Number of numbers d; c is not smaller than the rounding needs.
    """
    finest = math.floor(math.log2(min(SCALE / ratio, MOST_STEPS)))
    return max(1 << max(finest, 0), integer_clip(size))


def release_gaussian(vector: Floats, largest: float, deviation: float, rng: np.random.Generator) -> Floats:
    """Return the vector with discrete Gaussian noise; its cost μ²/2 is at most 2(C/σ)².

    The proof is that of `DiscreteGaussian`.

    Args:
        vector: Numbers of one client, clipped.
        largest: C.
        deviation: Standard deviation σ.
        rng: Source of the rounding and of the key of the noise.

    Raises:
        RefusedError: σ is so large that no noise on the grid serves.
    """
    bound = steps_of(deviation / largest, vector.size)
    scale = noise_scale(2 * (largest / deviation) ** 2, bound, "signed")
    numbers = quantise(vector, largest, bound, "signed", rng)
    numbers += discrete_gaussian(scale, vector.size, Stream(rng.bytes(32)))
    return numbers.astype(np.float64) * (largest / bound)


def add_gaussian(total: Floats, largest: float, multiplier: float, key: bytes) -> Floats:
    """Return a sum of clipped vectors on the grid, with discrete Gaussian noise of at least zC.

    One vector more moves the sum by at most C; rounding adds at most one step in each number.

    Args:
        total: Sum of vectors of norm at most C.
        largest: C.
        multiplier: z.
        key: Key of the noise, 32 bytes.

    Raises:
        RefusedError: z is so large that no noise on the grid serves.
    """
    bound = steps_of(multiplier, total.size)
    scale = math.ceil(multiplier * (bound * (1 + _SUMMING) + math.sqrt(total.size)))
    numbers = np.rint(total * (bound / largest)) + discrete_gaussian(scale, total.size, Stream(key))
    return np.asarray(numbers * (largest / bound), np.float64)


def release_laplace(vector: Floats, largest: float, spread: float, rng: np.random.Generator) -> Floats:
    """Return the vector of L1 norm at most C with discrete Laplace noise, ε-DP with ε = 2C/b.

    The noise has the probability ∝ exp(−|y|/t) at y, with t ≥ 2c/ε.

    Args:
        vector: Numbers of one client, clipped.
        largest: C.
        spread: Scale b.
        rng: Source of the rounding and of the key of the noise.

    Raises:
        RefusedError: b is so large that no noise on the grid serves.
    """
    bound = steps_of(spread / largest, vector.size)
    scale = math.ceil(bound * Fraction(spread) / Fraction(largest) * (1 + _MARGIN))
    numbers = _round_within(vector, largest, bound, rng)
    numbers += discrete_laplace(scale, vector.size, Stream(rng.bytes(32)))
    return numbers.astype(np.float64) * (largest / bound)


def _round_within(vector: Floats, largest: float, bound: int, rng: np.random.Generator) -> Ints:
    """Round at random to integers of absolute sum at most c."""
    expected = bound - DEVIATIONS * math.sqrt(vector.size)
    exact = clip(vector * (bound / largest), max(expected, bound / 4), 1, normalise=False)
    for _ in range(_DRAWS):
        numbers = round_randomly(exact, rng)
        if int(np.abs(numbers).sum()) <= bound:
            return numbers
    numbers = np.trunc(exact).astype(np.int64)
    if int(np.abs(numbers).sum()) > bound:
        raise RefusedError("release refused: the rounded vector exceeds its clip norm; nothing was sent")
    return numbers
