"""Stored results of a study: `runs.csv` with one number a line, and `rows.json` with one row a line.

Numbers that need more than `MOST_BYTES` stand in one file for each data set, `runs-SET.csv`.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import DataError
from studies.harness.row import About, Row, RowKey, Trial

COLUMNS = ("set", "protocol", "row", "seed", "round", "client", "metric", "value")
"""Empty seed: not of one run. Empty round: after the last round. Empty client: mean over clients."""

DIGITS = 9
"""Significant digits of a stored number; paired differences of RMSE need more than six."""

CURVE_DIGITS = 6
"""Significant digits of a number of a curve, which figures show."""

MOST_BYTES = 600_000
"""Largest size of `runs.csv`, as reviews show no larger file."""

LAST = -1
"""Round of metrics that were measured after the last one."""


class Number(NamedTuple):
    """One line of `runs.csv`."""

    key: RowKey
    seed: int
    round: int
    client: str
    metric: str
    value: float

    def cells(self) -> tuple[str, ...]:
        """Return the line's cells, in the order of `COLUMNS`."""
        seed, round_ = ("" if number < 0 else str(number) for number in (self.seed, self.round))
        digits = DIGITS if self.round < 0 else CURVE_DIGITS
        return *self.key, seed, round_, self.client, self.metric, f"{self.value:.{digits}g}"


@dataclass
class Results:
    """All rows of a study.

    Args:
        made: Time, versions and number of cores of the runs.
        rows: In the order of their keys.
    """

    made: dict[str, Any] = field(default_factory=dict)
    rows: dict[RowKey, Row] = field(default_factory=dict)

    def row(self, key: RowKey) -> Row:
        """Return the row of that key; a new one if there is none."""
        return self.rows.setdefault(key, Row(key))

    def rows_of(self, set_: str, protocol: str = "default") -> dict[str, Row]:
        """Return short name -> row, of the rows of a protocol that have a trial."""
        return {
            key.row: row for key, row in self.rows.items() if (key.set, key.protocol) == (set_, protocol) and row.trials
        }

    def days_before(self, since: str, rows: Iterable[Row]) -> list[str]:
        """Return the days, ascending, on which those of the rows were measured that are older than a time."""
        times = (row.about.made or self.made.get("made", "") for row in rows)
        return sorted({time[:10] for time in times if time < since})

    @classmethod
    def load(cls, folder: Path) -> "Results":
        """Read a study's folder; without files there are no rows.

        Raises:
            DataError: A file is malformed, or the two contradict each other.
        """
        about = folder / "rows.json"
        if not (files := run_files(folder)) and not about.exists():
            return cls()
        results = _read_rows(about)
        for runs in files or [folder / "runs.csv"]:
            results._read(runs)
        return results

    def _read(self, runs: Path) -> None:
        """Add the numbers of one file."""
        for line, number in _numbers(runs):
            if number.key not in self.rows:
                raise DataError(f"row '{number.key}' is not in rows.json; add it there", runs, line, "row")
            metrics = _place(self.rows[number.key], number)
            if number.metric in metrics:
                raise DataError("the same measurement stands on an earlier line; remove one", runs, line, "metric")
            metrics[number.metric] = number.value

    def save(self, folder: Path) -> None:
        """Write all files."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in run_files(folder):
            old.unlink()
        lines = sorted(number for row in self.rows.values() for number in _of_row(row))
        files = {"runs.csv": _csv(lines)}
        if len(files["runs.csv"].encode()) > MOST_BYTES:
            files = {f"runs-{name}.csv": _csv(of_set) for name, of_set in groupby(lines, lambda one: one.key.set)}
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8", newline="\n")
        rows = {
            str(key): _compact(row.about) for key, row in sorted(self.rows.items()) if row.trials or row.about.title
        }
        lines_of = [f"{_json(key)}: {_json(about)}" for key, about in {"": self.made, **rows}.items()]
        (folder / "rows.json").write_text("{\n" + ",\n".join(lines_of) + "\n}\n", "utf-8")


def run_files(folder: Path) -> list[Path]:
    """Return the files of a study's numbers."""
    return sorted(folder.glob("runs*.csv"))


def _csv(numbers: Iterable[Number]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(number.cells() for number in numbers)])
    return file.getvalue()


def _numbers(path: Path) -> Iterator[tuple[int, Number]]:
    """Yield line number and content of each line."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = tuple(next(lines, ()))
        if header != COLUMNS:
            missing = next((name for name in COLUMNS if name not in header), "")
            raise DataError(f"the columns are not {', '.join(COLUMNS)}; restore the header", path, 1, missing)
        for cells in lines:
            yield lines.line_num, _number(cells, path, lines.line_num)


def _number(cells: list[str], path: Path, line: int) -> Number:
    if len(cells) != len(COLUMNS):
        raise DataError(f"{len(cells)} cells instead of {len(COLUMNS)}; restore the line", path, line)
    named = dict(zip(COLUMNS, cells, strict=True))
    seed, round_ = (_to_float(named, name, path, line) if named[name] else -1 for name in ("seed", "round"))
    key = RowKey(named["set"], named["protocol"], named["row"])
    value = _to_float(named, "value", path, line)
    return Number(key, int(seed), int(round_), named["client"], named["metric"], value)


def _to_float(named: dict[str, str], column: str, path: Path, line: int) -> float:
    """Return a cell as a number."""
    try:
        value = float(named[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"'{named[column][:40]}' is not a finite number; correct it", path, line, column)
    return value


def _read_rows(path: Path) -> Results:
    """Return the rows of `rows.json`, without trials."""
    try:
        document: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8"))
        made = document.pop("")
        rows = {RowKey(*key.split("/")): About(**about) for key, about in document.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the rows cannot be read ({error}); restore the file", path) from error
    return Results(made, {key: Row(key, about) for key, about in rows.items()})


def _place(row: Row, number: Number) -> dict[str, float]:
    """Return the metrics of a trial that a number belongs to."""
    trial = row.trials.setdefault(number.seed, Trial())
    if number.client:
        return trial.clients.setdefault(number.client, {})
    return trial.metrics if number.round == LAST else trial.curve.setdefault(number.round, {})


def _of_row(row: Row) -> Iterator[Number]:
    for seed, trial in row.trials.items():
        places = [(LAST, "", trial.metrics), *((n, "", metrics) for n, metrics in trial.curve.items())]
        places += [(LAST, client, metrics) for client, metrics in trial.clients.items()]
        for round_, client, metrics in places:
            for metric, value in metrics.items():
                if math.isfinite(value):
                    yield Number(row.key, seed, round_, client, metric, value)


def _compact(about: About) -> dict[str, Any]:
    """Return the fields that say something."""
    return {name: value for name, value in asdict(about).items() if value}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
