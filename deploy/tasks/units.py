"""Units of a data set by their names."""

from typing import Any

from client.data.dataset import AnyDataset
from common.errors import DataError
from common.text import hint


def find_unit(dataset: AnyDataset, name: str, data: str, noun: str) -> Any:
    """Return the unit of that name, or the first for an empty name.

    Args:
        dataset: Data set to search.
        name: Name of the unit.
        data: Source of the data, for the error.
        noun: Noun of the unit, for the error.

    Raises:
        DataError: No unit has that name.
    """
    units = {unit.name: unit for unit in dataset.units}
    if name and name not in units:
        raise DataError(f"no {noun} '{name}' among its {len(units)} {noun}s{hint(name, units)}", data)
    return units[name or next(iter(units))]
