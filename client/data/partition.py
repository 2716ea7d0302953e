"""Whoever data are about (homes, visitors): dealt to clients, each with randomness of its own."""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from common.errors import DataError

P = TypeVar("P")


def dealt(people: Sequence[P], parts: int, seed: int, name: Callable[[P], str], what: str) -> list[tuple[P, ...]]:
    """Deal people out in the order of a seeded hash of their names; part sizes differ by one at most.

    Args:
        people: In any order.
        parts: Clients.
        seed: Of the hash.
        name: Names one of them.
        what: Names them all, for the error.

    Raises:
        DataError: More parts than people.
    """
    count = len(people)
    if not 1 <= parts <= count:
        raise DataError(f"cannot share {count} {what} among {parts} clients; ask for 1 to {count} clients")
    shuffled = sorted(people, key=lambda one: hashlib.sha256(f"{seed}:{name(one)}".encode()).digest())
    return [tuple(sorted(shuffled[part::parts], key=name)) for part in range(parts)]


def own_rng(seed: int, name: str) -> np.random.Generator:
    """A generator of somebody's own: the same wherever the data of that name live."""
    return np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])])


def floor_share(share: float, count: int) -> int:
    """floor(share · count), safe against 0.29 · 100 = 28.999…96."""
    return math.floor(share * count + 1e-9)
