"""What privacy costs a client's answer: clip, noise and the ledger, for 100,000 numbers.

`python -m benchmarks.dp_step` releases vectors of 100,000 numbers through an open ledger of a data file, as a client does in
every round. Times are medians. The limit asked for is 3 ms and one fsync: an fsync of a small file on the same disk is timed in
turns with the releases. `in memory` is the same work with the files on a RAM disk, where an fsync is free: what is left is the
overhead itself. Prints a table and writes JSON.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from client.privacy.ledger import Ledger
from client.privacy.places import open_ledger
from client.privacy.rows import Slot
from common.privacy.accounts import Zcdp, portion
from common.privacy.mechanisms import Gaussian
from common.privacy.noise import fresh_generator

LIMIT = 3.0
"""Milliseconds besides one fsync."""

T = TypeVar("T")
Times = dict[str, list[float]]


def measure(folder: Path, size: int, releases: int) -> Times:
    """Milliseconds of each part of each release, and of a plain fsync after it."""
    data, times = folder / "homes.csv", {name: [] for name in ("clip and noise", "pay", "keep", "fsync")}
    data.write_text("home,rule\n")
    ledger = open_ledger(str(data), folder / "state", "0" * 64, "client", Zcdp(), 10.0, 1e-5)
    mechanism = Gaussian(portion(ledger.total, releases), 1.0)
    vector = np.random.default_rng(0).standard_normal(size)
    for number in range(releases):
        _release(ledger, mechanism, vector, number, times)
        with (folder / "other").open("ab") as file:
            file.write(b"x" * 100)
            file.flush()
            _timed(times["fsync"], lambda file=file: os.fsync(file.fileno()))  # type: ignore[misc]
    ledger.close()
    return times


def _release(
    ledger: Ledger, mechanism: Gaussian, vector: np.ndarray[tuple[int], np.dtype[np.float64]], number: int, times: Times
) -> None:
    paid = _timed(times["pay"], lambda: ledger.reserve(Slot("run", number), ledger.terms(mechanism)))
    assert isinstance(paid, int)
    released = _timed(times["clip and noise"], lambda: mechanism.release(vector, fresh_generator()))
    content = released.astype(np.float32).tobytes()
    _timed(times["keep"], lambda: ledger.store(paid, content))
    ledger.acknowledge("run", number)


def _timed(into: list[float], work: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = work()
    into.append(1e3 * (time.perf_counter() - start))
    return result


def summary(times: Times) -> dict[str, float]:
    """Medians; `total` is that of whole releases, `beside_fsync` what they take beyond the fsync of their turn."""
    whole = [sum(parts) for parts in zip(times["clip and noise"], times["pay"], times["keep"], strict=True)]
    beside = [total - fsync for total, fsync in zip(whole, times["fsync"], strict=True)]
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {**medians, "total": statistics.median(whole), "beside_fsync": statistics.median(beside)}


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--numbers", type=int, default=100_000)
    arguments.add_argument("--releases", type=int, default=200)
    arguments.add_argument("--disk", type=Path, default=Path("/tmp"), help="folder on a real disk")
    arguments.add_argument("--ram", type=Path, default=Path("/dev/shm"), help="folder on a RAM disk")
    arguments.add_argument("--out", type=Path, default=Path("docs/results/dp_step.json"))
    options = arguments.parse_args()

    runs = {}
    for name, place in (("disk", options.disk), ("in memory", options.ram)):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            runs[name] = summary(measure(Path(folder), options.numbers, options.releases))
    columns = ("clip and noise", "pay", "keep", "total", "fsync", "beside_fsync")
    table = Table("ms", *columns, title=f"{options.numbers:,} numbers, limit {LIMIT:g} ms and one fsync")
    for name, run in runs.items():
        table.add_row(name, *(f"{run[column]:.2f}" for column in columns))
    Console().print(table)
    versions = {"python": platform.python_version(), "numpy": np.__version__, "sqlite": sqlite3.sqlite_version}
    result = {
        "numbers": options.numbers,
        "releases": options.releases,
        "limit_ms": LIMIT,
        "runs": runs,
        "versions": versions,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
