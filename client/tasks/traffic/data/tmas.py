"""FHWA's hourly station volumes (TMAS, `.VOL`): a row a station, direction, lane and day, with 24 hourly counts.

Traffic Monitoring Guide, hourly traffic volume record: columns of fixed width (until about 2019, with years of two digits;
the guide of 2013 has four), or `|` between columns that the first line names.
"""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from client.data.tables.reader import Table, opened, read_columns
from client.data.tables.values import Codes, codes, numbers
from client.tasks.traffic.data.local_time import times
from client.tasks.traffic.data.readings import Readings, last_of
from common.errors import DataError

HOURS = tuple(f"hour_{hour:02d}" for hour in range(24))
WIDTHS = {"record_type": 1, "state_code": 2, "f_system": 2, "station_id": 6, "travel_dir": 1, "travel_lane": 1}
DATE = ("year_record", "month_record", "day_record")
NEEDED = ("record_type", "state_code", "station_id", "travel_dir", "travel_lane", *DATE, *HOURS)

RECORDS = ("3", "v")
"""Record type of a volume: by columns, by name."""
SHORT_YEAR = 141
"""Characters of a row whose year has two digits; two more with four."""

ALL_LANES = "0"
"""Lane of a row that counts all lanes of its direction together."""


def read_volumes(path: Path) -> Readings:
    """Hourly volumes of stations, all their lanes and directions together.

    Where a direction has a row for all lanes together, its other rows do not count. An hour is missing if one of the lanes
    that the station has in that month is.

    Raises:
        DataError: Not such a file, or a malformed cell (with line and column).
    """
    with opened(path) as file:
        lines = [text for text in (line.strip("\r\n") for line in file) if text]
    if not lines:
        raise DataError("the file is empty", path)
    table = _delimited(path, lines[0]) if "|" in lines[0] else _fixed(path, lines)
    kinds = pyarrow.compute.utf8_lower(table.column("record_type"))
    volume = pyarrow.compute.is_in(kinds, value_set=pyarrow.array(RECORDS)).to_numpy(zero_copy_only=False)
    if not volume.all():
        raise table.error(int((~volume).argmax()), "record_type", "not a traffic volume record (3 or V)")
    return _summed(table)


def _delimited(path: Path, header: str) -> Table:
    titles = [title.strip().lower() for title in header.split("|")]
    missing = [title for title in NEEDED if title not in titles]
    if missing:
        raise DataError("this column is not named in the first line of the volumes", path, 1, missing[0])
    rows = read_columns(path, "|", titles)
    if len(rows) < 2:
        raise DataError("the file has a header but no rows", path)
    return rows.where(np.arange(len(rows)) > 0)


def _fixed(path: Path, lines: list[str]) -> Table:
    year = 4 if max(map(len, lines)) > SHORT_YEAR else 2
    widths = {**WIDTHS, "year_record": year, "month_record": 2, "day_record": 2, "day_of_week": 1}
    widths |= dict.fromkeys(HOURS, 5)
    stops = np.cumsum(list(widths.values())).tolist()
    text = pyarrow.array(lines)
    columns = [
        pyarrow.compute.utf8_trim_whitespace(pyarrow.compute.utf8_slice_codeunits(text, stop - width, stop))
        for stop, width in zip(stops, widths.values(), strict=True)
    ]
    return Table(path, list(widths), columns, headed=False)


def _summed(table: Table) -> Readings:
    stations, names = codes(_joined(table, "-", "state_code", "station_id"))
    direction, _ = codes(table.column("travel_dir"))
    lane, lanes = codes(table.column("travel_lane"))
    day = _days(table)
    volumes = np.stack([numbers(table, title) for title in HOURS], axis=1)

    kept, repeated = last_of(stations, direction, lane, day)
    together = np.array([name == ALL_LANES for name in lanes])[lane]
    kept = kept[(together | ~_have((stations, direction, day), together))[kept]]
    site, time, values = _added(stations[kept], direction[kept] * len(lanes) + lane[kept], day[kept], volumes[kept])

    notes = (f"{repeated} rows of a lane and day that came again replaced by the later ones",) if repeated else ()
    hours = time[:, None] * 86_400 + 3_600 * np.arange(24)
    return Readings(np.repeat(site, 24), hours.ravel(), values.reshape(-1, 1), names, ("volume",), notes)


def _days(table: Table) -> Codes:
    """R, days since 1970; years of two digits are 1970 to 2069."""
    year = numbers(table, "year_record")
    full = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    texts = [f"{value:.0f}" for value in full.tolist()]
    date = pyarrow.compute.binary_join_element_wise(
        pyarrow.array(texts), table.column("month_record"), table.column("day_record"), "-"
    )
    dated = Table(table.path, [*table.titles, "date"], [*table.columns, date], table.headed, table.rows)
    return times(dated, "date") // 86_400


def _have(keys: tuple[Codes, ...], flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """R, whether any row with the same keys is flagged."""
    _, group = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    return np.asarray(np.bincount(group, flags, minlength=group.max() + 1)[group] > 0)


def _added(
    stations: Codes, lane: Codes, day: Codes, volumes: NDArray[np.float64]
) -> tuple[Codes, Codes, NDArray[np.float64]]:
    """Station, day and 24 sums over lanes of each station's day."""
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


def _joined(table: Table, mark: str, *titles: str) -> pyarrow.Array:
    return pyarrow.compute.binary_join_element_wise(*(table.column(title) for title in titles), mark)
