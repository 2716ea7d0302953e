"""Time of reading 300,000 rows of each task, and the table engine's part of it.

`python -m studies speed tables` writes a table of each task, with times where the task has times, and reads it in
interleaved turns: by the table engine alone, and by the task's reader. `--before FOLDER`, a checkout of commit 48d3a75 or
earlier, times its readers too, in a process of their own. Times are seconds of processor time. The limits are 1.5 s for a
reader, and half the time of the earlier reader. Prints a table and writes JSON.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from client.data.dataset import Source
from client.data.tables.reader import read_table
from client.tasks.registry import CLIENT_TASKS
from studies.speed import timing

LIMIT = {"seconds": 1.5, "faster": 2.0}
READERS = {
    "rules": "read_homes",
    "sessions": "read_visitors",
    "traffic": "read_series",
    "ratings": "read_raters",
    "markets": "read_markets",
}
"""Task -> function of its earlier reader."""

CHILD = """
import sys, time
from importlib import import_module
sys.path.insert(0, sys.argv[1])
for call in sys.stdin:
    task, function, path = call.split()
    read = getattr(import_module(f"client.data.{task}.reader"), function)
    start = time.process_time()
    read(path)
    print(time.process_time() - start, flush=True)
"""

Columns = dict[str, NDArray[Any]]


def columns_of(task: str, rows: int) -> Columns:
    """Return random columns: 60,000 homes; 6,000 users and 3,700 items; 60 sensors by the hour."""
    rng = np.random.default_rng(0)

    def names(noun: str, count: int) -> NDArray[Any]:
        return np.char.add(f"{noun}-", rng.integers(0, count, rows).astype(str))

    start, places = np.datetime64("2024-01-01T00:00:00"), np.arange(rows)
    clicks = {"user": names("user", 6_000), "item": names("item", 3_700)}
    seconds = start + rng.integers(0, 300 * 86_400, rows)
    match task:
        case "rules":
            sides = {f"{side}_device": names("type", 12) for side in ("trigger", "action")}
            ids = {f"{side}_id": names("device", 30) for side in sides}
            return (
                {"user_id": names("home", 60_000), "trigger_state": names("is", 20), "action": names("do", 20)}
                | sides
                | ids
            )
        case "traffic":
            sensors = {
                "timestamp": start + 3_600 * (places // 60),
                "site": np.char.add("site-", (places % 60).astype(str)),
            }
            return sensors | {"volume": rng.poisson(300, rows), "speed": rng.normal(60, 9, rows).round(1)}
        case "ratings":
            return clicks | {"rating": rng.integers(1, 11, rows) / 2, "timestamp": seconds}
        case "markets":
            return {"market": names("market", 4), **clicks, "rating": rng.integers(1, 6, rows)}
    first = places - places % 5  # of five clicks half a minute apart
    return {"user": clicks["user"][first], "item": clicks["item"], "timestamp": seconds[first] + 30 * (places % 5)}


def write_table(path: Path, columns: Columns) -> Path:
    """Write columns as CSV or, where the name says so, as JSON lines."""
    rows = zip(*(column.astype(str).tolist() for column in columns.values()), strict=True)
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True)) | {"rating": float(row[2])}) for row in rows]
    else:
        lines = [",".join(row) for row in (tuple(columns), *rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def earlier_readers(folder: Path | None) -> Iterator[Callable[[str, Path], float]]:
    """Yield what times a reader of another checkout, in a process that stays."""
    command = [sys.executable, "-c", CHILD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin
        assert child.stdout
        source, answers = child.stdin, child.stdout

        def seconds(task: str, path: Path) -> float:
            source.write(f"{task} {READERS[task]} {path}\n")
            source.flush()
            return float(answers.readline())

        yield seconds
        source.close()


def measure(task: str, path: Path, turns: int, earlier: Callable[[str, Path], float] | None) -> dict[str, float]:
    """Return the median seconds of each way to read a table; a first turn does not count."""
    kind = CLIENT_TASKS[task]
    ways: Mapping[str, Callable[[], float]] = {
        "engine": lambda: cpu_seconds(lambda: read_table(path, kind.schema)),
        "reader": lambda: cpu_seconds(lambda: kind.read(Source(str(path)), None, 0)),
        **({"earlier": partial(earlier, task, path)} if earlier else {}),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns + 1):
        for name, work in ways.items():
            times[name].append(work())
    found = {name: median(seconds[1:]) for name, seconds in times.items()}
    ratio = {"ratio": timing.median_ratio(times["earlier"][1:], times["reader"][1:])} if earlier else {}
    return {**found, **ratio}


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "tables")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--before", type=Path, help="checkout with the earlier readers")
    options = parser.parse_args()
    table = Table("table", "engine s", "reader s", "earlier s", "faster", title=f"{options.rows:,} rows")
    runs = []
    with tempfile.TemporaryDirectory() as folder, earlier_readers(options.before) as earlier:
        for name, task in {**{f"{task}.csv": task for task in READERS}, "ratings.jsonl": "ratings"}.items():
            path = write_table(Path(folder) / name, columns_of(task, options.rows))
            run = measure(task, path, options.turns, earlier if options.before else None)
            cells = (f"{run[key]:.2f}" if key in run else "" for key in ("engine", "reader", "earlier", "ratio"))
            table.add_row(name, *cells)
            runs.append({"table": name, "megabytes": path.stat().st_size / 1e6, **run})
    Console().print(table)
    timing.write(options.out, {"rows": options.rows, "turns": options.turns, "limit": LIMIT, "runs": runs}, "pyarrow")


if __name__ == "__main__":
    main()
