"""Partition of units among clients, and random generators of units."""

import hashlib
import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from client.data.dataset import Unit
from common.errors import DataError

UnitT = TypeVar("UnitT", bound=Unit)


def partition_units(units: Sequence[UnitT], clients: int, seed: int, noun: str) -> list[tuple[UnitT, ...]]:
    """Partition units among clients by a seeded hash of their names; sizes differ by at most one.

    Args:
        units: Units in any order.
        clients: Number of partitions.
        seed: Seed of the hash.
        noun: Plural noun of the units, for the error.

    Raises:
        DataError: There are more clients than units.
    """
    count = len(units)
    if not 1 <= clients <= count:
        raise DataError(f"cannot share {count} {noun} among {clients} clients; ask for 1 to {count} clients")
    shuffled = sorted(units, key=lambda unit: hashlib.sha256(f"{seed}:{unit.name}".encode()).digest())
    return [tuple(sorted(shuffled[k::clients], key=lambda unit: unit.name)) for k in range(clients)]


def own_rng(seed: int, name: str) -> np.random.Generator:
    """Return a random generator for a name, the same on every machine."""
    return np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])])


def floor_share(share: float, count: int) -> int:
    """Return floor(share · count), safe against 0.29 · 100 = 28.999…96."""
    return math.floor(share * count + 1e-9)
