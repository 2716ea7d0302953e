"""Time of FedGA's server step and of a plain running mean, and its memory at 10 and 100 clients.

`python -m studies speed server_step` makes 100 clients' updates of an SR-GNN for 40,000 items (4.3 million float32), one
by one, and times the work of each way between two updates; the time to make updates is left out. The two ways take turns;
the median over turns is printed and written. The running mean is `sum += update`, in float64, with one division at the end:
no weights, no |Δ| and no step.
"""

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution, Member
from server.aggregation.optimizers import adaptive
from studies.speed import timing

SHAPES = {"items": (40_000, 100), "gates": (200, 1000), "readout": (100, 1000)}
MODEL: Arrays = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}


class Clients:
    """Updates made one by one; `making` is the time to make them, in seconds."""

    def __init__(self, count: int) -> None:
        self.count, self.making = count, 0.0

    def __iter__(self) -> Iterator[tuple[Member, Arrays]]:
        rng = np.random.default_rng(0)
        for _ in range(self.count):
            start = time.perf_counter()
            update: Arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}
            self.making += time.perf_counter() - start
            yield Member("", float(rng.integers(1, 100))), update


def running_mean(clients: Clients) -> Arrays:
    """Return the mean of the updates."""
    total = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    for _, sent in clients:
        for name, update in sent.items():
            total[name] += update
    return {name: (a / clients.count).astype(np.float32) for name, a in total.items()}


def fedga(clients: Clients) -> Arrays:
    """Return the model after FedGA's step: both sums, the moments and the step."""
    total = Contribution(magnitude=True)
    for member, update in clients:
        total.add(member, update)
    delta, magnitude = total.mean_and_magnitude()
    step, _ = adaptive({}, delta, "saturated", magnitude, beta1=0.9, beta2=0.99, tau=1e-4)
    return sub(MODEL, scale(step, 0.03))


WAYS: dict[str, Callable[[Clients], Arrays]] = {"running mean": running_mean, "FedGA": fedga}


def seconds(way: Callable[[Clients], Arrays], count: int) -> float:
    """Return the seconds of a way, without those to make the updates."""
    clients, start = Clients(count), time.perf_counter()
    way(clients)
    return time.perf_counter() - start - clients.making


def peak(way: Callable[[Clients], Arrays], count: int) -> float:
    """Return the peak of megabytes that a way and its current update hold."""
    tracemalloc.start()
    way(Clients(count))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "server_step")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()

    took: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(options.repetitions):
        for name, way in WAYS.items():
            took[name].append(seconds(way, options.clients))
    median = {name: statistics.median(all_of) for name, all_of in took.items()}
    few = max(1, options.clients // 10)
    memory = {name: {n: peak(way, n) for n in (few, options.clients)} for name, way in WAYS.items()}

    size = sum(a.size for a in MODEL.values())
    title = f"{options.clients} clients, {size / 1e6:.1f} million float32"
    table = Table("", "s", "times", f"peak MB, {few} clients", f"{options.clients} clients", title=title)
    for name, time_taken in median.items():
        peaks = [f"{memory[name][n]:.0f}" for n in (few, options.clients)]
        table.add_row(name, f"{time_taken:.2f}", f"{time_taken / median['running mean']:.2f}", *peaks)
    Console().print(table)
    result = {
        "clients": options.clients,
        "parameters": size,
        "seconds": took,
        "median_seconds": median,
        "times_running_mean": median["FedGA"] / median["running mean"],
        "peak_mb": memory,
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
    }
    timing.write(options.out, result, "numpy")
