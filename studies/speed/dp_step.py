"""Time of a release of 100,000 numbers: clip, noise and ledger.

`python -m studies speed dp_step` releases vectors of 100,000 numbers through an open ledger of a data file, as a client
does in every round. Times are medians. The limit is 3 ms and one fsync: an fsync of a small file on the same disk is timed
in turns with the releases. `processor` is the same work with the files on a RAM disk, where an fsync is free, in processor
time, which other load on the machine does not lengthen. Prints a table and writes JSON.
"""

import os
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.locate import open_ledger
from common.arrays import Floats
from common.privacy.accounts import Gdp
from common.privacy.mechanisms import Gaussian, fresh_generator
from studies.speed import timing

LIMIT = 3.0
"""Largest number of milliseconds without one fsync."""

PARTS = ("clip and noise", "reserve", "store")

T = TypeVar("T")
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Watch:
    """Stopwatch: milliseconds of named work."""

    clock: Callable[[], float]
    times: Times = field(default_factory=lambda: defaultdict(list))

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        """Do the work and note its time."""
        start = self.clock()
        result = work()
        self.times[name].append(1e3 * (self.clock() - start))
        return result


def measure(folder: Path, size: int, releases: int, watch: Watch) -> Times:
    """Return the times of each part of each release, and of a plain fsync after it."""
    data = folder / "homes.csv"
    data.write_text("home,rule\n")
    ledger = open_ledger(str(data), folder / "state", "0" * 64, "client", Gdp(), 10.0, 1e-5)
    mechanism = Gaussian(ledger.total / (releases + 1), 1.0)
    vector = np.random.default_rng(0).standard_normal(size)
    with (folder / "other").open("ab", buffering=0) as other:
        for number in range(releases):
            _release(ledger, mechanism, vector, Slot("run", number), watch)
            ledger.acknowledge("run", number)
            other.write(b"x" * 100)
            watch("fsync", lambda: os.fsync(other.fileno()))
    ledger.close()
    return watch.times


def _release(ledger: Ledger, mechanism: Gaussian, vector: Floats, slot: Slot, watch: Watch) -> None:
    """Release a vector in the steps of `Ledger.release`."""
    entry = watch("reserve", lambda: ledger.charge(slot, ledger.terms(mechanism)))
    assert isinstance(entry, int)
    released = watch(
        "clip and noise", lambda: mechanism.release(vector, fresh_generator()).astype(np.float32).tobytes()
    )
    watch("store", lambda: ledger.store(entry, released))


def summary(times: Times) -> dict[str, float]:
    """Return median times of releases: `total`, and `beside_fsync` without the fsync of their turn."""
    whole = [sum(parts) for parts in zip(*(times[part] for part in PARTS), strict=True)]
    extra = [total - fsync for total, fsync in zip(whole, times["fsync"], strict=True)]
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {**medians, "total": statistics.median(whole), "beside_fsync": statistics.median(extra)}


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "dp_step")
    parser.add_argument("--numbers", type=int, default=100_000)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--disk", type=Path, default=Path("/tmp"), help="folder on a real disk")
    parser.add_argument("--ram", type=Path, default=Path("/dev/shm"), help="folder on a RAM disk")
    options = parser.parse_args()

    runs = {}
    for name, place, clock in (("disk", options.disk, time.perf_counter), ("processor", options.ram, time.thread_time)):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            runs[name] = summary(measure(Path(folder), options.numbers, options.releases, Watch(clock)))
    columns = (*PARTS, "total", "fsync", "beside_fsync")
    table = Table("ms", *columns, title=f"{options.numbers:,} numbers, limit {LIMIT:g} ms and one fsync")
    for name, run in runs.items():
        table.add_row(name, *(f"{run[column]:.2f}" for column in columns))
    Console().print(table)
    result = {
        "numbers": options.numbers,
        "releases": options.releases,
        "limit_ms": LIMIT,
        "runs": runs,
        "sqlite": sqlite3.sqlite_version,
    }
    timing.write(options.out, result, "numpy")
