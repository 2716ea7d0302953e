"""Discrete Gaussian and Laplace noise: exact integer sampler; privacy mechanism of secure sums.

Block size and order of draws belong to version 1 of the protocol: a key means one noise.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from common.arrays import Flags, Ints
from common.errors import RefusedError
from common.privacy.accounts import Gdp, MechanismSpec, PrivacyCost
from common.privacy.vectors import Sign
from common.secure.quantisation import SQUARED_ROUNDING, integer_clip, noise_scale, squared_sensitivity
from common.secure.terms import MOST_NOISE

Words = NDArray[np.uint64]

_BLOCK = 65_536
"""Numbers drawn at once."""

_FARTHEST = 128
"""Draws beyond this many scales, of probability below e⁻¹²⁷, are drawn again."""


class Stream:
    """AES-256-CTR keystream of a 32-byte key, read as 64-bit words."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Words:
        """Return the next words."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), "<u8")

    def words_below(self, limit: int, count: int) -> Words:
        """Return uniform words in [0, limit), by rejection."""
        words = self.words(count)
        if limit == 2**64 or words.max(initial=0) < limit:
            return words
        words = words.copy()
        while (again := np.flatnonzero(words >= np.uint64(limit))).size:
            words[again] = self.words(again.size)
        return words

    def below(self, bound: int, count: int) -> Words:
        """Return uniform integers in [0, bound)."""
        width = _width(bound)
        return self.words_below(width * bound, count) // np.uint64(width)


def _draw(accepted: Callable[[int, int, Stream], Ints], scale: int, size: int, stream: Stream) -> Ints:
    """Draw integers.

    Args:
        accepted: (scale, proposals, stream) -> accepted proposals.
        scale: Integer scale of the distribution.
        size: Number of draws.
        stream: Source of all randomness.

    Raises:
        RefusedError: The scale is not in [1, 2²⁴).
    """
    scale = operator.index(scale)
    if not 1 <= scale < MOST_NOISE:
        raise RefusedError(f"noise of scale {scale} cannot be drawn; it must be between 1 and {MOST_NOISE - 1}")
    noise = np.empty(size, np.int64)
    for start in range(0, size, _BLOCK):
        block, filled = noise[start : start + _BLOCK], 0
        while filled < block.size:
            drawn = accepted(scale, 9 * (block.size - filled) // 4 + 64, stream)[: block.size - filled]
            block[filled : filled + drawn.size] = drawn
            filled += drawn.size
    return noise


def _accepted_laplace(scale: int, proposals: int, stream: Stream) -> Ints:
    """Propose discrete Laplace numbers; return the valid ones."""
    magnitude, negative = _discrete_laplace(scale, proposals, stream)
    signed = magnitude.astype(np.int64)
    return np.where(negative, -signed, signed)


def _accepted_gaussian(scale: int, proposals: int, stream: Stream) -> Ints:
    """Propose discrete Laplace numbers; keep each with exp(−(|y| − s)²/(2s²)) (Algorithm 3, t = s)."""
    magnitude, negative = _discrete_laplace(scale, proposals, stream)
    inside = magnitude <= _FARTHEST * scale
    magnitude, negative = magnitude[inside], negative[inside]
    distance = np.where(magnitude > scale, magnitude - np.uint64(scale), np.uint64(scale) - magnitude)
    is_accepted = _bernoulli_exp(distance * distance, 2 * scale * scale, stream)
    signed = magnitude[is_accepted].astype(np.int64)
    return np.where(negative[is_accepted], -signed, signed)


discrete_gaussian = partial(_draw, _accepted_gaussian)
"""Draw from N_ℤ(0, s²), probability ∝ exp(−y²/(2s²)), of (s, size, stream); see `_draw`."""

discrete_laplace = partial(_draw, _accepted_laplace)
"""Draw with probability ∝ exp(−|y|/t) at y, of (t, size, stream); see `_draw`."""


def _discrete_laplace(scale: int, proposals: int, stream: Stream) -> tuple[Words, Flags]:
    """Return magnitudes and signs of accepted proposals (Algorithm 2 with s = 1)."""
    remainder = stream.below(scale, proposals)
    remainder = remainder[_bernoulli_series(remainder, scale, stream)]
    magnitude = remainder + np.uint64(scale) * _geometric(remainder.size, stream)
    negative = (stream.words(magnitude.size) & np.uint64(1)).astype(bool)
    valid = ~(negative & (magnitude == 0))
    return magnitude[valid], negative[valid]


def _geometric(count: int, stream: Stream) -> Words:
    """Return numbers of successes of Bernoulli(1/e) before the first failure."""
    successes = np.zeros(count, np.uint64)
    active = np.arange(count)
    while active.size:
        active = active[_bernoulli_inverse_e(active.size, stream)]
        successes[active] += np.uint64(1)
    return successes


def _bernoulli_exp(numerators: Words, denominator: int, stream: Stream) -> Flags:
    """Draw Bernoulli(exp(−a/b)) for a ≥ 0: ⌊a/b⌋ draws of Bernoulli(1/e), then the rest (Algorithm 1)."""
    whole = numerators // np.uint64(denominator)
    result: Flags = whole == 0
    due, trial = np.flatnonzero(whole), 0
    while due.size:
        due, trial = due[_bernoulli_inverse_e(due.size, stream)], trial + 1
        is_last = whole[due] == trial
        result[due[is_last]] = True
        due = due[~is_last]
    alive = np.flatnonzero(result)
    rest = numerators[alive] - whole[alive] * np.uint64(denominator)
    result[alive] = _bernoulli_series(rest, denominator, stream)
    return result


def _bernoulli_inverse_e(count: int, stream: Stream) -> Flags:
    """Draw Bernoulli(exp(−1)); the first trial of the series, of probability 1, takes no draw."""
    return _bernoulli_series(np.ones(count, np.uint64), 1, stream, first=2)


def _bernoulli_series(numerators: Words, denominator: int, stream: Stream, first: int = 1) -> Flags:
    """Draw Bernoulli(exp(−a/b)) for 0 ≤ a < b·first: the first failure K of Bernoulli(a/(bK)) is odd."""
    odd = np.zeros(numerators.size, bool)
    active, index = np.arange(numerators.size), first
    while active.size:
        width = _width(denominator * index)
        success = stream.words_below(width * denominator * index, active.size) < numerators * np.uint64(width)
        if index % 2:
            odd[active] = ~success
        later = np.flatnonzero(success)
        active, numerators, index = active[later], numerators[later], index + 1
    return odd


def _width(bound: int) -> int:
    """Return the number of words that stand for one integer of [0, bound)."""
    return min(2**64 // bound, 2**63)


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise N_ℤ(0, s²) of one helper on every number of a sum; μ-GDP with μ² = Δ²/(s² − r²) for r = 3.

    Neighbours replace one client's vector by any other of norm at most c (Canonne, Kamath and Steinke 2020). Noise of further
    helpers and other clients' vectors are post-processing.

    Real-valued noise N(0, s² − r²) that is rounded at random, to y with probability ∝ exp(−(y − x)²/(2r²)), has the
    probabilities of N_ℤ(0, s²) up to a factor of 1 ± 4·exp(−2π²r²) < 1 ± 10⁻⁷⁶ (Poisson's sum formula). The rounding is
    post-processing of a Gaussian mechanism. The factors of all numbers of a ledger are less than the margin of its total.
    """

    bound: int
    """c, largest L2 norm of a client's integers."""
    sign: Sign
    scale: int
    """s, standard deviation of the noise in integer units."""

    name: ClassVar[str] = "discrete-gaussian-sum"

    @property
    def sensitivity(self) -> float:
        """Δ, L2 sensitivity of the sum in integer units."""
        return math.sqrt(squared_sensitivity(self.bound, self.sign))

    @property
    def noise(self) -> float:
        """S."""
        return float(self.scale)

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost Δ²/(2(s² − r²)) of GDP, rounded up."""
        if self.scale**2 <= SQUARED_ROUNDING:
            return PrivacyCost()
        exact = Fraction(squared_sensitivity(self.bound, self.sign), 2 * (self.scale**2 - SQUARED_ROUNDING))
        cost = float(exact)
        return PrivacyCost.of_gdp(cost if Fraction(cost) >= exact else math.nextafter(cost, math.inf))


def _calibrate(rho: float, size: int) -> DiscreteGaussian:
    bound = integer_clip(size)
    return DiscreteGaussian(bound, "signed", noise_scale(rho, bound, "signed"))


DISCRETE_GAUSSIAN = MechanismSpec(
    name=DiscreteGaussian.name,
    summary="discrete Gaussian noise of every helper on sums over clients of {what}, each client's as one vector of Euclidean"
    " norm at most {clip:g}",
    account=lambda options: Gdp(),
    calibrate=lambda options, rho, size: _calibrate(rho, size),
    cost_power=2,
)
