"""FHWA's hourly station volumes (TMAS, `.VOL`): a row for each station, direction, lane and day.

Traffic Monitoring Guide, hourly traffic volume record: columns of fixed width (until about 2019, with years of two digits;
the guide of 2013 has four), or `|` between columns that the first line names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow
import pyarrow.compute as pc

from client.data.tables.cells import Cells
from client.data.tables.codes import Codes
from client.data.tables.formats import Content
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import Column, TableSchema
from client.data.tables.table import Table
from client.data.tables.values import to_codes, to_flags
from client.tasks.traffic.data.readings import Readings, find_last
from common.arrays import Flags, Floats

HOURS = tuple(f"hour_{hour:02d}" for hour in range(24))
WIDTHS = {"record_type": 1, "state_code": 2, "f_system": 2, "station_id": 6, "travel_dir": 1, "travel_lane": 1}
DATE = ("year_record", "month_record", "day_record")
SCHEMA = TableSchema(
    (
        *(Column(name, "text") for name in ("record_type", "state_code", "station_id")),
        *(Column(name, "text", blank="missing") for name in ("travel_dir", "travel_lane")),
        *(Column(name, "number") for name in DATE),
        *(Column(name, "number", blank="missing") for name in HOURS),
    )
)

RECORDS = ("3", "v")
"""Record type of a volume: by columns, by name."""
SHORT_YEAR = 141
"""Characters of a row whose year has two digits; two more with four."""

ALL_LANES = "0"
"""Lane of a row that counts all lanes of its direction together."""


@dataclass(frozen=True, eq=False)
class FixedWidth(Cells):
    """Columns of fixed width.

    Args:
        lines: Lines of text.
        places: One-based place of each line.
        widths: Characters of each column.
    """

    lines: Any
    places: Sequence[int]
    widths: Sequence[int]

    unit: ClassVar[Literal["line", "row"]] = "line"

    @classmethod
    def of(cls, content: Content) -> "FixedWidth":
        """Detect the number of digits of years by the length of the lines."""
        places, lines = zip(*content.lines(), strict=True)
        year = 4 if max(map(len, lines)) > SHORT_YEAR else 2
        widths = {**WIDTHS, "year_record": year, "month_record": 2, "day_record": 2, "day_of_week": 1}
        widths |= dict.fromkeys(HOURS, 5)
        return cls(content, list(widths), pyarrow.array(lines), places, list(widths.values()))

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places as text."""
        stops = np.cumsum(self.widths).tolist()
        spans = ((stops[place] - self.widths[place], stops[place]) for place in places)
        return [pc.utf8_slice_codeunits(self.lines, start, stop) for start, stop in spans]

    def place_of(self, row: int) -> int:
        """Return the one-based line of a row counted from 0."""
        return self.places[row]


def read_volumes(content: Content) -> Readings:
    """Read hourly volumes of stations, all their lanes and directions together.

    Where a direction has a row for all lanes together, its other rows do not count. An hour is missing if one of the lanes
    that the station has in that month is.

    Raises:
        DataError: Not such a file, or a malformed cell (with line and column).
    """
    named = "|" in content.first_line()
    table = to_table(detect_cells(content, SCHEMA) if named else FixedWidth.of(content), SCHEMA)
    kinds = pc.utf8_lower(table.columns["record_type"])
    other = ~to_flags(pc.is_in(kinds, value_set=pyarrow.array(RECORDS)))
    if other.any():
        raise table.error("record_type", other, "is not a traffic volume record (3 or V)", "leave the row out")
    return _summed(table)


def _summed(table: Table) -> Readings:
    labels = (table.columns["state_code"], table.columns["station_id"])
    stations, names = to_codes(pc.binary_join_element_wise(*labels, "-"))
    direction, _ = to_codes(pc.fill_null(table.columns["travel_dir"], ""))
    lane, lanes = to_codes(pc.fill_null(table.columns["travel_lane"], ""))
    day = _days(table)
    volumes = np.stack([table.numbers(name) for name in HOURS], axis=1)

    kept, repeated = find_last(stations, direction, lane, day)
    together = np.array([name == ALL_LANES for name in lanes])[lane]
    kept = kept[(together | ~_have((stations, direction, day), together))[kept]]
    site, time, values = _added(stations[kept], direction[kept] * len(lanes) + lane[kept], day[kept], volumes[kept])

    notes = (f"{repeated} rows of a lane and day that came again replaced by the later ones",) if repeated else ()
    hours = time[:, None] * 86_400 + 3_600 * np.arange(24)
    return Readings(np.repeat(site, 24), hours.ravel(), values.reshape(-1, 1), names, ("volume",), notes)


def _days(table: Table) -> Codes:
    """Return days since 1970, R; years of two digits are 1970 to 2069.

    Raises:
        DataError: There is no such day.
    """
    year, month, day = (table.numbers(name).clip(0, 9999).astype(np.int64) for name in DATE)
    full = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    months = ((full - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    no_month, no_day = (month < 1) | (month > 12), days.astype("datetime64[M]") != months
    for name, wrong in (("month_record", no_month), ("day_record", no_day)):
        if wrong.any():
            raise table.error(name, wrong, "is not in the calendar", "correct it, or leave the row out")
    return days.astype(np.int64)


def _have(keys: tuple[Codes, ...], flags: Flags) -> Flags:
    """Return R flags: True if any row with the same keys is flagged."""
    _, group = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    return np.asarray(np.bincount(group, flags, minlength=group.max() + 1)[group] > 0)


def _added(stations: Codes, lane: Codes, day: Codes, volumes: Floats) -> tuple[Codes, Codes, Floats]:
    """Return station, day and 24 sums over lanes for each station's day."""
    month = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    lanes = np.unique(np.stack([stations, month, lane], axis=1), axis=0)
    months, expected = np.unique(lanes[:, :2], axis=0, return_counts=True)

    days, first, group = np.unique(np.stack([stations, day], axis=1), axis=0, return_index=True, return_inverse=True)
    sums, counts = np.zeros((len(days), 24)), np.zeros((len(days), 24), np.int64)
    np.add.at(sums, group, np.nan_to_num(volumes))
    np.add.at(counts, group, ~np.isnan(volumes))

    place = {(int(a), int(b)): int(count) for (a, b), count in zip(months, expected, strict=True)}
    needed = np.array([place[int(stations[row]), int(month[row])] for row in first])
    return days[:, 0], days[:, 1], np.where(counts == needed[:, None], sums, np.nan)
