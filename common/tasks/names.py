"""Names that several clients have, found by two sums: of hash buckets, then of the bytes of names.

A name has one bucket in each of several independent hashes. The first sum counts the clients of each bucket. In the second
sum, a name whose buckets all have enough clients adds its bytes in one slot for each of them. Equal names add up to a multiple
of the same bytes.

In runs with noise the first sum has the noise of helpers. The second has none: each client multiplies the bytes of a name by a
random number mod 2⁵². A slot then holds a uniformly random multiple, which shows a name and nothing of its number of clients.
What the second sum adds to the first is thus the set of names in frequent buckets. One client changes it only by a name that no
other client has, as in stability-based histograms (Korolova et al. 2009; Bun, Nissim and Stemmer 2016). `NameNoise` bounds the
probability that such a name is in it.
"""

import hashlib
import math
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, Ints
from common.errors import WireError
from common.privacy.vectors import RESIDUE_BITS

HASHES, BUCKETS = 2, 1 << 17
"""Number of hashes, and of buckets of each."""

NOISED_HASHES, NOISED_BUCKETS = 12, 1 << 16
"""The same in runs with noise."""

MOST_NOISED_NAMES = 64
"""Maximum number of names of a client in runs with noise."""

FAILURE = 1e-9
"""Share of δ for names of one client alone; it is less than the margin of an account's total."""

MOST_NAMES = 20_000
"""Maximum number of names of a client; of more, it adds those with the smallest hashes."""

LONGEST = 128
"""Maximum length of a name in bytes."""

CHECKS = 3
"""Numbers of a slot before the bytes: the clients that have the name, and 32 bits of a third hash."""

WIDTH = CHECKS + LONGEST // 2
"""Numbers of a slot; each holds two bytes."""

SLOTS, VALUES = "slots", "values"
"""Arrays of a client's part: the slots in ascending order, and the numbers in each."""

SUM = "names"
"""Array of the sum over clients."""

_MASK = np.uint64((1 << RESIDUE_BITS) - 1)

Residues = NDArray[np.uint64]
"""Numbers mod 2⁵²."""


@dataclass(frozen=True)
class NameNoise:
    """Noise on the number of clients of each bucket, and the threshold above it.

    Args:
        rho: Cost μ²/2 of the first sum.
        epsilon: ε of the run.
        delta: δ of the run.
        helpers: Number of helpers, each of which adds the noise of the cost.
    """

    rho: float
    epsilon: float
    delta: float
    helpers: int

    @property
    def clip(self) -> float:
        """Largest norm of a client's vector: m names with one bucket in each of r hashes."""
        return math.sqrt(NOISED_HASHES * MOST_NOISED_NAMES)

    @property
    def spread(self) -> float:
        """Standard deviation of the noise on a number of clients.

        Replacing a client changes the sum by √2·C at most.
        """
        return self.clip * math.sqrt(self.helpers / self.rho)

    @property
    def chance(self) -> float:
        """Largest probability p that one bucket of a client's name is frequent without other clients.

        All r buckets of one of m names are frequent with a probability of at most m·pʳ, for hashes that are independent of the
        data. (1 + e^ε)·m·pʳ is `FAILURE`·δ: the released names differ from those of other clients with that probability, for
        both contents of the client's data.
        """
        log_rate = math.log(FAILURE * self.delta / MOST_NOISED_NAMES) - float(np.logaddexp(0, self.epsilon))
        return math.exp(log_rate / NOISED_HASHES)

    @property
    def most_frequent(self) -> int:
        """Largest number of frequent buckets of a hash: half of the chance is that others are in it."""
        return int(self.chance / 2 * NOISED_BUCKETS)

    def threshold(self, least: int) -> float:
        """Return k + z·σ, which noise on one client's bucket exceeds with half of the chance, 1 − Φ(z)."""
        return least - NormalDist().inv_cdf(self.chance / 2) * self.spread


@dataclass(frozen=True)
class NameSum:
    """One of the two sums.

    Args:
        run: Name of the run, the salt of the hashes.
        frequent: Buckets of each hash with enough clients, ascending; empty for the first sum.
        noise: Noise of the first sum; None in runs without.
    """

    run: str
    frequent: tuple[Ints, ...] = ()
    noise: NameNoise | None = None

    @classmethod
    def of_request(cls, run: str, frequent: Arrays, noise: NameNoise | None = None) -> "NameSum":
        """Return the sum that a request asks for.

        Raises:
            WireError: The buckets are none, or too many for a run with noise.
        """
        hashes, most = cls(run, (), noise).hashes, noise.most_frequent if noise else BUCKETS
        buckets = tuple(frequent.get(str(k), np.zeros(0, np.int64)) for k in range(hashes)) if frequent else ()
        for found in buckets:
            is_listed = found.dtype == np.int64 and found.ndim == 1 and found.size and bool((np.diff(found) > 0).all())
            if not is_listed or not 0 <= found[0] <= found[-1] < cls(run, (), noise).buckets:
                raise WireError("NamesRequest.frequent: no buckets in ascending order")
            if len(found) > most:
                raise WireError(f"NamesRequest.frequent: {len(found):,} buckets of a hash; noise allows {most:,}")
        return cls(run, buckets, noise)

    @property
    def hashes(self) -> int:
        """Number of hashes."""
        return NOISED_HASHES if self.noise else HASHES

    @property
    def buckets(self) -> int:
        """Number of buckets of a hash."""
        return NOISED_BUCKETS if self.noise else BUCKETS

    @property
    def request(self) -> Arrays:
        """Buckets as arrays of a request; the inverse of `of_request`."""
        return {str(k): found for k, found in enumerate(self.frequent)}

    @property
    def channel(self) -> str:
        """Channel of the secure sum, in round 0; `names/2` is of numbers mod 2⁵²."""
        return f"names/{(2 if self.noise else 1) if self.frequent else 0}"

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of slots, and of numbers in each."""
        return (sum(map(len, self.frequent)), WIDTH) if self.frequent else (self.hashes * self.buckets, 1)

    @property
    def part_bytes(self) -> int:
        """Largest size of a client's part in bytes: the slots, and the numbers in each."""
        slots, width = self.shape
        return min(slots, self.hashes * self.most) * (width + 1) * 8

    @property
    def template(self) -> Arrays:
        """Zeros of a client's vector in a secure sum."""
        return {SUM: np.zeros(self.shape)}

    def part(self, names: Collection[str]) -> Arrays:
        """Return what a client with these names adds; each bucket counts once in the first sum."""
        placed = self.sent(names)
        each = [slot for name in placed for slot in self._slots(name)]
        slots, index = np.unique(np.array(each, np.int64), return_inverse=True)
        if not self.frequent:
            return {SLOTS: slots, VALUES: np.ones((len(slots), 1))}
        values: Residues = np.zeros((len(slots), WIDTH), np.uint64)
        if placed:
            factors: Residues = np.ones((len(placed), 1), np.uint64)
            if self.noise:  # uniform mod 2⁵², of the operating system's entropy
                factors = (np.frombuffer(secrets.token_bytes(8 * len(placed)), "<u8") & _MASK)[:, None]
            numbers = factors * np.array([self._numbers(name) for name in placed])
            np.add.at(values, index, np.repeat(numbers, self.hashes, axis=0))
        return {SLOTS: slots, VALUES: (values & _MASK).astype(np.float64)}

    def sent(self, names: Collection[str]) -> list[str]:
        """Return those of a client's names that it adds."""
        return [name for name in admissible(self.run, names, self.most) if self._slots(name)]

    @property
    def most(self) -> int:
        """Maximum number of names of a client; of more, it adds those with the smallest hashes."""
        return MOST_NOISED_NAMES if self.noise else MOST_NAMES

    def pack(self, part: Arrays) -> Arrays:
        """Return a client's part as its vector in a secure sum."""
        vector = self.template
        vector[SUM][part[SLOTS]] = part[VALUES]
        return vector

    def add(self, total: Array, part: Arrays) -> None:
        """Add a client's part to a total of `shape`.

        Raises:
            WireError: It is malformed or beyond what a client may add.
        """
        slots, values = part.get(SLOTS), part.get(VALUES)
        if slots is None or values is None or part.keys() != {SLOTS, VALUES}:
            raise WireError("names: the reply has other arrays")
        is_ordered = slots.dtype == np.int64 and slots.ndim == 1 and bool((np.diff(slots) > 0).all())
        if not is_ordered or len(slots) > HASHES * MOST_NAMES or values.dtype != np.float64:
            raise WireError("names: slots are out of order, or too many")
        if len(slots) and not 0 <= slots[0] <= slots[-1] < self.shape[0]:
            raise WireError("names: slots are out of range")
        limit = MOST_NAMES * 65535.0 if self.frequent else 1.0
        if values.shape != (len(slots), self.shape[1]) or not ((values >= 0) & (values <= limit)).all():
            raise WireError("names: numbers are out of range")
        total[slots] += values

    def next(self, total: Array, least: int) -> "NameSum":
        """Return the second sum, over buckets of at least so many clients, with noise of more."""
        counts = total[:, 0].reshape(self.hashes, self.buckets)
        if self.noise is None:
            return NameSum(self.run, tuple(np.flatnonzero(np.rint(row) >= least) for row in counts))
        threshold, most = self.noise.threshold(least), self.noise.most_frequent
        highest = [np.sort(np.argsort(-row, kind="stable")[:most]) for row in counts]
        frequent = tuple(found[row[found] >= threshold] for row, found in zip(counts, highest, strict=True))
        return NameSum(self.run, frequent, self.noise)

    def names(self, total: Array, least: int) -> dict[str, int]:
        """Return the names of at least so many clients in the total of the second sum, with their factors.

        The factor is the number of clients; with noise it is random, and the first sum alone decides. A slot that several names
        share has no valid bytes. It is read once the others are found in their other slots and taken off.
        """
        left: Residues = np.rint(total).astype(np.int64).view(np.uint64) & _MASK
        least = 1 if self.noise else least
        found: dict[str, int] = {}
        waiting = [*np.flatnonzero(left[:, 0] >= least).tolist()]
        while waiting:
            slot = waiting.pop()
            factor = left[slot, 0]
            name = self._read(left[slot]) if factor >= least else ""
            if not name or name in found or slot not in (slots := self._slots(name)):
                continue
            found[name] = int(factor)
            left[list(slots)] = (left[list(slots)] - factor * self._numbers(name)) & _MASK
            waiting += [other for other in slots if other != slot]
        return found

    def _read(self, numbers: Residues) -> str:
        """Return the name whose numbers, times the first one, are those of a slot; empty if several share it."""
        factor = int(numbers[0])
        zeros = (factor & -factor).bit_length() - 1
        ring = 1 << max(RESIDUE_BITS - zeros, 0)
        single = (numbers >> np.uint64(zeros)) * np.uint64(pow(factor >> zeros, -1, ring)) & np.uint64(ring - 1)
        if ring < 1 << 16 or (single >= 1 << 16).any():
            return ""
        try:
            name = single[CHECKS:].astype("<u2").tobytes().rstrip(b"\0").decode()
        except UnicodeDecodeError:
            return ""
        return name if np.array_equal(numbers[0] * self._numbers(name) & _MASK, numbers) else ""

    def _numbers(self, name: str) -> Residues:
        """Return the numbers of a name; a client adds them, with noise a multiple of them."""
        content = np.frombuffer(name.encode().ljust(LONGEST, b"\0"), "<u2")
        checks = np.frombuffer(_digest(self.run, name)[-4:], "<u2")
        return np.concatenate([[1], checks, content]).astype(np.uint64)

    def _slots(self, name: str) -> tuple[int, ...]:
        """Return the slot of a name for each hash; none if a bucket has too few clients."""
        buckets = np.frombuffer(_digest(self.run, name), "<u4")[: self.hashes].astype(np.int64) % self.buckets
        if not self.frequent:
            return tuple(int(bucket) + k * self.buckets for k, bucket in enumerate(buckets))
        slots, start = list[int](), 0
        for bucket, listed in zip(buckets, self.frequent, strict=True):
            position = int(np.searchsorted(listed, bucket))
            if position == len(listed) or listed[position] != bucket:
                return ()
            slots.append(start + position)
            start += len(listed)
        return tuple(slots)


def admissible(run: str, names: Iterable[str], most: int) -> list[str]:
    """Return the names that a client may add: those that are not too long, at most so many."""
    short = {name for name in names if 0 < len(name.encode()) <= LONGEST}
    return sorted(sorted(short, key=lambda name: _digest(run, name))[:most])


def _digest(run: str, name: str) -> bytes:
    """Return 64 bytes: one word for each hash, and a further one at the end."""
    return hashlib.sha512(f"{run}\0{name}".encode()).digest()
