"""Readings as rows: what every form of traffic data is read into before it has a regular grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from client.data.tables.codes import Codes, combine_codes, index_names, recode
from client.data.tables.formats import stem_of
from client.data.tables.table import Table
from client.tasks.traffic.schema import SITE, TIME
from common.arrays import Floats, Ints
from common.errors import DataError, VocabularyError


@dataclass(frozen=True, eq=False)
class Readings:
    """R readings of S sites, in any order.

    Args:
        site: R, codes into `sites`.
        time: R, when a reading's interval begins by the sensor's own clock, in seconds from 1970.
        values: R × D, not-a-number where a cell is empty.
        sites: Names, S.
        variables: Names, D.
        notes: As `Dataset.notes`.
    """

    site: Codes
    time: Ints
    values: Floats
    sites: Sequence[str]
    variables: tuple[str, ...]
    notes: tuple[str, ...] = ()


def to_readings(table: Table) -> Readings:
    """Return the readings of a table in long form; without a site it is one series, named after the file.

    Raises:
        DataError: It has no variable.
    """
    if not table.variables:
        message = "no variable among the columns; add one for each measurement, such as volume"
        raise DataError(message, table.path, table.cells.header_line)
    site, names = table.codes(SITE) if SITE in table else (np.zeros(len(table), np.int64), [stem_of(table.path)])
    values = np.stack([table.numbers(name) for name in table.variables], axis=1)
    return Readings(site, to_seconds(table, TIME), values, names, table.variables)


def to_seconds(table: Table, name: str) -> Ints:
    """Return a column of times as whole seconds from 1970 by the sensor's own clock, R."""
    return np.floor(table.numbers(name)).astype(np.int64)


def join_readings(parts: Sequence[Readings]) -> Readings:
    """Return readings of the same variables as one; sites of the same name are the same site."""
    sites = index_names([part.sites for part in parts])
    return Readings(
        np.concatenate([recode(part.site, part.sites, sites) for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.values for part in parts]),
        list(sites),
        parts[0].variables,
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def find_last(*keys: Codes) -> tuple[Codes, int]:
    """Return the rows, in order, that are the last with their keys, R each; and how many are not."""
    backwards = combine_codes(*keys)[::-1]
    _, place = np.unique(backwards, return_index=True)
    return np.sort(len(backwards) - 1 - place), len(backwards) - len(place)


def order_variables(readings: Readings, variables: tuple[str, ...], path: Path) -> Readings:
    """Return the same readings with their columns in the order of `variables`.

    Raises:
        VocabularyError: They have variables that are not asked for.
        DataError: They lack one that is.
    """
    unknown = [name for name in readings.variables if name not in variables]
    if unknown:
        message = f"not among the variables of the federation or of the first file, {_list(variables)}"
        raise VocabularyError(f"{message}; leave {_list(unknown)} out", path, 1, unknown[0])
    missing = [name for name in variables if name not in readings.variables]
    if missing:
        raise DataError(f"this variable is missing; the data need {_list(variables)}", path, 1, missing[0])
    columns = [readings.variables.index(name) for name in variables]
    return replace(readings, values=readings.values[:, columns], variables=variables)


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
