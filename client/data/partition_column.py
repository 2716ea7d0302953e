"""Partition by a column: each of its values is one client."""

from dataclasses import replace

from client.data.dataset import AnyDataset
from client.data.tables.schema import PARTITION_MARK
from common.errors import DataError

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
