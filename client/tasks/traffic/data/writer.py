"""Series as a table in long form."""

from collections.abc import Iterator
from pathlib import Path

from client.data.tables.writer import write_private_csv
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.schema import SITE, TIME


def write_series(path: Path, dataset: Sensors) -> None:
    """Write series as CSV, readable by the owner only; `read_series` with the vocabulary inverts it.

    Filled gaps are written as empty cells, which the reader fills again.
    """
    rows = (row for series in dataset.units for row in _rows(series, dataset.vocabulary.step_seconds))
    write_private_csv(path, (TIME, SITE, *dataset.vocabulary.variables), rows)


def _rows(series: Series, step: int) -> Iterator[tuple[str | float, ...]]:
    readings = zip(
        series.times(step).astype(str).tolist(), series.values.tolist(), series.observed.tolist(), strict=True
    )
    for time, values, observed in readings:
        yield time, series.name, *(value if there else "" for value, there in zip(values, observed, strict=True))
