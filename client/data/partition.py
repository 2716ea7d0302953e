"""Partition of units (homes, visitors) among clients, and the random generator of each unit."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from client.data.dataset import AnyDataset, Unit
from client.data.tables.schema import PARTITION_MARK
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
        raise DataError(f"cannot partition {count} {noun} among {clients} clients; set 1 to {count} clients")
    shuffled = sorted(units, key=lambda unit: hashlib.sha256(f"{seed}:{unit.name}".encode()).digest())
    return [tuple(sorted(shuffled[k::clients], key=lambda unit: unit.name)) for k in range(clients)]


def own_rng(seed: int, name: str) -> np.random.Generator:
    """Return the generator of a unit, seeded by (seed, name); it is the same on every machine."""
    return np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])])


def floor_share(share: float, count: int) -> int:
    """Return floor(share · count), robust to rounding such as 0.29 · 100 = 28.999…96."""
    return math.floor(share * count + 1e-9)


COLUMNS = ("partition_id", "client_id")
"""Titles of partition columns in data sets on Hugging Face."""


def with_clients(dataset: AnyDataset) -> AnyDataset:
    """Return a data set that was read with a partition column, with the units of each client.

    Units bear their own names again; a name that several clients have is followed by the value of the column.
    """
    owned = [unit.name.partition(PARTITION_MARK) for unit in dataset.units]
    names = [name or value for value, _, name in owned]
    again = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    units, clients = [], dict[str, list[str]]()
    for unit, (value, _, _), name in zip(dataset.units, owned, names, strict=True):
        own = f"{name} ({value})" if name in again else name
        units.append(replace(unit, name=own))
        clients.setdefault(value, []).append(own)
    ordered = sorted(clients, key=lambda value: (int(value), "") if value.isdecimal() else (0, value))
    units.sort(key=lambda unit: str(unit.name))
    return replace(dataset, units=tuple(units), clients=tuple(tuple(clients[value]) for value in ordered))


def parts_by_column(dataset: AnyDataset, clients: int, unit: str) -> list[AnyDataset]:
    """Return each client's partition of a data set with clients of its own.

    Raises:
        DataError: Another number of clients is asked for.
    """
    if clients not in (0, len(dataset.clients)):
        message = (
            f"the partition column has {len(dataset.clients):,} values, each of which is a client, not {clients:,}"
        )
        raise DataError(f"{message}; leave --clients out, or leave --partition out to partition {unit}")
    units = {one.name: one for one in dataset.units}
    return [replace(dataset, units=tuple(units[name] for name in names), clients=()) for names in dataset.clients]
