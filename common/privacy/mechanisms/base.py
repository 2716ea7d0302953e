"""Types of mechanisms: recorded cost and noise, release, registered spec; generators of noise.

Noise is drawn and added in float64, whose numbers are not evenly spaced.
The set of possible outputs therefore depends slightly on the private vector (Mironov 2012).
Every claim names this limit: the guarantee is that of real-valued noise.
Philox passes public tests of randomness but is not a certified cipher; each release takes a new key.
"""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

import numpy as np

from common.arrays import Floats
from common.errors import RefusedError
from common.privacy.accounts import Account, PrivacyCost
from common.privacy.options import PrivacyOptions, Unit


class AccountedMechanism(Protocol):
    """Mechanism as a ledger records it."""

    @property
    def name(self) -> str:
        """Name in ledgers."""

    @property
    def sensitivity(self) -> float:
        """Largest change of the exact value between neighbours, in the norm that is clipped."""

    @property
    def noise(self) -> float:
        """Noise scale: σ, or Laplace's b."""

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost of one release in every account."""


class Mechanism(AccountedMechanism, Protocol):
    """Mechanism that clips one vector and adds noise to it."""

    def standard_deviation(self, entries: int = 1) -> float:
        """Return the noise standard deviation of a coordinate, relative to vectors of L2 norm C.

        Args:
            entries: Number of equal non-zero entries of the vectors, where the norm that is clipped is not L2.
        """

    def release(self, vector: Floats, rng: "np.random.Generator", normalise: bool = False) -> Floats:
        """Return the clipped vector with noise.

        With `normalise`, shorter vectors are scaled up to the clip norm.

        Raises:
            RefusedError: The vector holds NaN or infinity.
        """


MechanismT = TypeVar("MechanismT", bound=AccountedMechanism, covariant=True)


@dataclass(frozen=True)
class MechanismSpec(Generic[MechanismT]):
    """Registered mechanism; built in only, since the privacy statement vouches for every mechanism."""

    name: str
    """Value of `privacy.mechanism`; for unit `record`, a label."""
    summary: str
    """Text of the privacy statement.

    The field `what` stands for the values that get noise, other fields for options of `[privacy]`.
    """
    units: frozenset[Unit]
    """Units that it protects."""
    account: Callable[[PrivacyOptions], Account]
    """Account in which a run with these options is cheapest; raises ConfigError if ε is too small for it."""
    calibrate: Callable[[PrivacyOptions, float, int], MechanismT]
    """(options, cost, size) -> mechanism of that cost in that account.

    Raises RefusedError for an impossible cost.

    The size is the length of the vector or, for noise in local steps, their number.
    """
    cost_power: Literal[1, 2]
    """Exponent k of cost ∝ noise^−k."""


def check_positive(**amounts: float) -> None:
    """Accept amounts that are positive and finite.

    Raises:
        RefusedError: An amount is zero, negative, NaN or infinite; the first such amount is named.
    """
    for name, amount in amounts.items():
        if not (math.isfinite(amount) and amount > 0):
            raise RefusedError(f"privacy: {name} must be a positive number, not {amount}")


def fresh_generator() -> "np.random.Generator":
    """Return a new generator for one release, keyed with 256 bits of the operating system's entropy."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(secrets.randbits(256))))
