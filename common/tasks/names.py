"""Names that several clients have, found by two sums: of hash buckets, then of the bytes of names.

A name has one bucket in each of two independent hashes. The first sum counts the clients of each bucket. In the second sum,
a name whose both buckets have enough clients adds its bytes in one slot for each of them. Equal names add up to a multiple of
the same bytes.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from common.arrays import Array, Arrays, Floats, Ints
from common.errors import WireError

HASHES, BUCKETS = 2, 1 << 17
"""Number of hashes, and of buckets of each."""

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


@dataclass(frozen=True)
class NameSum:
    """One of the two sums.

    Args:
        run: Name of the run, the salt of the hashes.
        frequent: Buckets of each hash with enough clients, ascending; empty for the first sum.
    """

    run: str
    frequent: tuple[Ints, ...] = ()

    @classmethod
    def of_request(cls, run: str, frequent: Arrays) -> "NameSum":
        """Return the sum that a request asks for.

        Raises:
            WireError: The buckets are none.
        """
        buckets = tuple(frequent.get(str(k), np.zeros(0, np.int64)) for k in range(HASHES)) if frequent else ()
        for found in buckets:
            is_listed = found.dtype == np.int64 and found.ndim == 1 and found.size and bool((np.diff(found) > 0).all())
            if not is_listed or not 0 <= found[0] <= found[-1] < BUCKETS:
                raise WireError("CountsRequest.frequent: no buckets in ascending order")
        return cls(run, buckets)

    @property
    def request(self) -> Arrays:
        """Buckets as arrays of a request; the inverse of `of_request`."""
        return {str(k): found for k, found in enumerate(self.frequent)}

    @property
    def channel(self) -> str:
        """Channel of the secure sum, in round 0."""
        return f"names/{int(bool(self.frequent))}"

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of slots, and of numbers in each."""
        return (sum(map(len, self.frequent)), WIDTH) if self.frequent else (HASHES * BUCKETS, 1)

    @property
    def template(self) -> Arrays:
        """Zeros of a client's vector in a secure sum."""
        return {SUM: np.zeros(self.shape)}

    def part(self, names: Collection[str]) -> Arrays:
        """Return what a client with these names adds; each bucket counts once in the first sum."""
        placed = [(name, places) for name in admissible(self.run, names) if (places := self._slots(name))]
        each = [slot for _, places in placed for slot in places]
        slots, index = np.unique(np.array(each, np.int64), return_inverse=True)
        if not self.frequent:
            return {SLOTS: slots, VALUES: np.ones((len(slots), 1))}
        values = np.zeros((len(slots), WIDTH))
        if placed:
            np.add.at(values, index, np.repeat([self._numbers(name) for name, _ in placed], HASHES, axis=0))
        return {SLOTS: slots, VALUES: values}

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
        """Return the second sum, over the buckets that at least so many clients have."""
        counts = np.rint(total[:, 0]).reshape(HASHES, BUCKETS)
        return NameSum(self.run, tuple(np.flatnonzero(row >= least) for row in counts))

    def names(self, total: Array, least: int) -> dict[str, int]:
        """Return the names of at least so many clients in the total of the second sum, with their number.

        A slot that several names share has no valid bytes. It is read once the others are found in their other slot and
        taken off.
        """
        left: Floats = np.rint(total)
        found: dict[str, int] = {}
        waiting = [*np.flatnonzero(left[:, 0] >= least).tolist()]
        while waiting:
            slot = waiting.pop()
            clients = int(left[slot, 0])
            name = self._read(left[slot]) if clients >= least else ""
            if not name or name in found or slot not in (slots := self._slots(name)):
                continue
            found[name] = clients
            left[list(slots)] -= clients * self._numbers(name)
            waiting += [other for other in slots if other != slot]
        return found

    def _read(self, numbers: Floats) -> str:
        """Return the name in a slot; empty if several share it."""
        single = numbers / max(numbers[0], 1.0)
        if (single != np.rint(single)).any() or not ((single >= 0) & (single <= 65535)).all():
            return ""
        try:
            name = single[CHECKS:].astype("<u2").tobytes().rstrip(b"\0").decode()
        except UnicodeDecodeError:
            return ""
        return name if np.array_equal(self._numbers(name), single) else ""

    def _numbers(self, name: str) -> Floats:
        """Return what a client with a name adds in its slot."""
        content = np.frombuffer(name.encode().ljust(LONGEST, b"\0"), "<u2")
        checks = np.frombuffer(_digest(self.run, name)[16:20], "<u2")
        return np.concatenate([[1.0], checks, content]).astype(np.float64)

    def _slots(self, name: str) -> tuple[int, ...]:
        """Return the slot of a name for each hash; none if a bucket has too few clients."""
        buckets = np.frombuffer(_digest(self.run, name)[:16], "<u8") % BUCKETS
        if not self.frequent:
            return tuple(int(bucket) + k * BUCKETS for k, bucket in enumerate(buckets))
        slots, start = list[int](), 0
        for bucket, listed in zip(buckets.astype(np.int64), self.frequent, strict=True):
            place = int(np.searchsorted(listed, bucket))
            if place == len(listed) or listed[place] != bucket:
                return ()
            slots.append(start + place)
            start += len(listed)
        return tuple(slots)


def admissible(run: str, names: Iterable[str]) -> list[str]:
    """Return the names that a client may add: those that are not too long, at most `MOST_NAMES`."""
    short = {name for name in names if 0 < len(name.encode()) <= LONGEST}
    return sorted(sorted(short, key=lambda name: _digest(run, name))[:MOST_NAMES])


def _digest(run: str, name: str) -> bytes:
    return hashlib.sha256(f"{run}\0{name}".encode()).digest()
