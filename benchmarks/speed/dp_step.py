"""What privacy costs a client's answer: clip, noise and the ledger, for 100,000 numbers.

`python -m benchmarks.dp_step` releases vectors of 100,000 numbers through an open ledger of a data file, as a client does in
every round. Times are medians. The limit asked for is 3 ms and one fsync: an fsync of a small file on the same disk is timed in
turns with the releases. `processor` is the same work with the files on a RAM disk, where an fsync is free, in processor time,
which other load on the machine does not lengthen: the overhead itself. Prints a table and writes JSON.
"""

import argparse
import json
import os
import platform
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

from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.locate import open_ledger
from client.privacy.ledger.records import Slot
from common.privacy.accounts import Zcdp, portion
from common.privacy.clipping import Vector
from common.privacy.mechanisms.additive import Gaussian
from common.privacy.randomness import fresh_generator

LIMIT = 3.0
"""Milliseconds besides one fsync."""

PARTS = ("clip and noise", "pay", "keep")

T = TypeVar("T")
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Watch:
    """Times work, in milliseconds by name."""

    clock: Callable[[], float]
    times: Times = field(default_factory=lambda: defaultdict(list))

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        """Do the work."""
        start = self.clock()
        result = work()
        self.times[name].append(1e3 * (self.clock() - start))
        return result


def measure(folder: Path, size: int, releases: int, watch: Watch) -> Times:
    """Each part of each release, and a plain fsync after it."""
    data = folder / "homes.csv"
    data.write_text("home,rule\n")
    ledger = open_ledger(str(data), folder / "state", "0" * 64, "client", Zcdp(), 10.0, 1e-5)
    mechanism = Gaussian(portion(ledger.total, releases), 1.0)
    vector = np.random.default_rng(0).standard_normal(size)
    with (folder / "other").open("ab", buffering=0) as other:
        for number in range(releases):
            _release(ledger, mechanism, vector, Slot("run", number), watch)
            ledger.acknowledge("run", number)
            other.write(b"x" * 100)
            watch("fsync", lambda: os.fsync(other.fileno()))
    ledger.close()
    return watch.times


def _release(ledger: Ledger, mechanism: Gaussian, vector: Vector, slot: Slot, watch: Watch) -> None:
    """`Ledger.release` taken apart."""
    paid = watch("pay", lambda: ledger.reserve(slot, ledger.terms(mechanism)))
    assert isinstance(paid, int)
    released = watch(
        "clip and noise", lambda: mechanism.release(vector, fresh_generator()).astype(np.float32).tobytes()
    )
    watch("keep", lambda: ledger.store(paid, released))


def summary(times: Times) -> dict[str, float]:
    """Medians; `total` is that of whole releases, `beside_fsync` what they take beyond the fsync of their turn."""
    whole = [sum(parts) for parts in zip(*(times[part] for part in PARTS), strict=True)]
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
    for name, place, clock in (("disk", options.disk, time.perf_counter), ("processor", options.ram, time.thread_time)):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            runs[name] = summary(measure(Path(folder), options.numbers, options.releases, Watch(clock)))
    columns = (*PARTS, "total", "fsync", "beside_fsync")
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
