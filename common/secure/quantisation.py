"""Clipped, randomly rounded integers whose norm is checked, and their way back."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats, Ints
from common.errors import RefusedError
from common.privacy.vectors import BLOCK, RESIDUE_BITS, Sign, blocks
from common.privacy.vectors import clip as clip_norm
from common.secure.terms import MOST_NOISE, SumTerms

LARGEST = 2.0**21
"""Bound of a number in a sum without noise; larger ones are clamped."""

_SLACK = 0.999
"""Share of c² that the expected squared norm after rounding may fill."""

_MARGIN = Fraction(1, 10**9)
"""Relative share of a cost that is not spent."""

_DRAWS = 20
"""Attempts at a rounding of norm c, before truncation."""


def integer_clip(size: int) -> int:
    """Return c of a vector of d numbers: max(1024, 2^⌈log₂(4√d)⌉)."""
    c = 1024
    while c * c < 16 * size:
        c *= 2
    return c


def squared_sensitivity(bound: int, sign: Sign) -> int:
    """Return Δ² for replacing one client: 4c², or 2c² for vectors without negative numbers."""
    return (2 if sign == "positive" else 4) * bound * bound


SQUARED_ROUNDING = 9
"""r², variance of the rounding from real-valued to discrete noise (`DiscreteGaussian`)."""


def noise_scale(rho: float, bound: int, sign: Sign) -> int:
    """Return the least integer s with Δ²/(2(s² − r²)) ≤ ρ, less a margin for rounded costs.

    Raises:
        RefusedError: ρ is not a positive number, or so small or large that no scale serves.
    """
    if not (math.isfinite(rho) and rho > 0):
        raise RefusedError(f"privacy: rho must be a positive number, not {rho}")
    largest = Fraction(rho) * (1 - _MARGIN)
    scale = math.isqrt(math.ceil(squared_sensitivity(bound, sign) / (2 * largest)) + SQUARED_ROUNDING - 1) + 1
    if scale >= MOST_NOISE:
        raise RefusedError(f"requested cost ρ = {rho:.3g} is too small: noise of scale {scale} cannot be drawn")
    return scale


def quantise(vector: Floats, clip: float, bound: int, sign: Sign, generator: np.random.Generator) -> Ints:
    """Clip to L2 norm C, scale by c/C and round at random; the squared norm of the result is at most c².

    A vector with NaN or infinity counts as zeros.

    Args:
        vector: Numbers of one client.
        clip: Clip norm C.
        bound: Integer clip c.
        sign: `positive` if no number may be negative.
        generator: Source of the rounding; it needs no secrecy.

    Raises:
        RefusedError: A number is negative where the sign is `positive`.
    """
    exact = _shrunk(vector, clip, bound)
    for _ in range(_DRAWS):
        numbers = round_randomly(exact, generator)
        if int(numbers @ numbers) <= bound * bound:
            break
    else:
        numbers = np.trunc(exact).astype(np.int64)
    if sign == "positive" and numbers.min(initial=0) < 0:
        raise RefusedError("this sum is of numbers that are not negative; a negative number was given")
    return numbers


_RESIDUE_SHIFT = np.uint64(64 - RESIDUE_BITS)
"""Bits below a residue: its multiples of 2ᵏ⁻⁵² add up mod 2ᵏ."""


def exact_integers(vector: Floats, terms: SumTerms) -> Ints:
    """Return the numbers of one client as integers of a sum without noise."""
    if terms.has_residues:
        return (np.asarray(vector).astype(np.uint64) << _RESIDUE_SHIFT).view(np.int64)
    return fixed_point(vector, terms.most)


def fixed_point(vector: Floats, most: int) -> Ints:
    """Return numbers clamped to ±2²¹ times 2^(41 − ⌈log₂ most⌉), rounded; zeros for NaN or infinity.

    Args:
        vector: Numbers of one client.
        most: Largest number of clients in the sum.
    """
    exact = np.asarray(vector, np.float64)
    if not np.isfinite(exact).all():
        return np.zeros(exact.size, np.int64)
    return np.rint(np.clip(exact, -LARGEST, LARGEST) * fixed_scale(most)).astype(np.int64)


def fixed_scale(most: int) -> float:
    """Return the scale of fixed point: n·2²¹·scale ≤ 2⁶² for n ≤ most."""
    return 2.0 ** (41 - (most - 1).bit_length())


def centre(total: NDArray[np.unsignedinteger[Any]]) -> Ints:
    """Return numbers mod 2ᵏ as integers in [−2ᵏ⁻¹, 2ᵏ⁻¹)."""
    return total.view(np.dtype(f"<i{total.dtype.itemsize}")).astype(np.int64)


def decode(total: NDArray[np.unsignedinteger[Any]], terms: SumTerms) -> Floats:
    """Return the sum in the clients' units: Y·C/c with noise, Y/scale or Y mod 2⁵² without."""
    if terms.has_residues:
        return (total.astype(np.uint64) >> _RESIDUE_SHIFT).astype(np.float64)
    unit = terms.clip / terms.bound if terms.rho else 1 / fixed_scale(terms.most)
    return centre(total).astype(np.float64) * unit


def _shrunk(vector: Floats, clip: float, bound: int) -> Floats:
    """Return f·x for the clipped vector x of norm at most c.

    The factor f is the largest up to 1 at which the expected squared norm after rounding is at most .999 c².
    """
    exact = np.asarray(vector, np.float64)
    if not np.isfinite(exact).all():
        return np.zeros(exact.size)
    exact = clip_norm(exact, clip, 2, normalise=False) * (bound / clip)
    squared, variance = float(exact @ exact), 0.0
    for block in blocks(exact):
        fraction = block - np.floor(block)
        variance += float(fraction @ (1 - fraction))
    largest = _SLACK * bound * bound - variance
    return exact if squared <= largest else exact * math.sqrt(largest / squared)


def round_randomly(exact: Floats, generator: np.random.Generator) -> Ints:
    """Round each number to a neighbour, up with the probability of its fraction."""
    numbers = np.empty(exact.size, np.int64)
    for start, block in zip(range(0, exact.size, BLOCK), blocks(exact), strict=True):
        numbers[start : start + block.size] = np.floor(block + generator.random(block.size))
    return numbers
