"""Series as a table in long form."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from client.data.tables.writer import private_csv
from client.tasks.traffic.data.series import Series
from common.tasks.traffic.vocabulary import SensorVariables


def write_series(path: Path, series: Iterable[Series], measures: SensorVariables) -> None:
    """Write series as CSV, readable by the owner only; `read_series` with the measures inverts it.

    Filled gaps are written as empty cells, which the reader fills again.
    """
    with private_csv(path) as writer:
        writer.writerow(("timestamp", "site", *measures.variables))
        for one in series:
            writer.writerows(_lines(one, measures.step_seconds))


def _lines(series: Series, step: int) -> Iterator[tuple[str | float, ...]]:
    rows = zip(series.times(step).astype(str).tolist(), series.values.tolist(), series.observed.tolist(), strict=True)
    for time, values, observed in rows:
        yield time, series.name, *(value if there else "" for value, there in zip(values, observed, strict=True))
