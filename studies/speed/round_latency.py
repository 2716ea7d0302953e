"""Time of a round with a ClientApp without work: Flower's stock SuperNode and the resident client.

`python -m studies speed round_latency` measures 2 and 8 clients, bare (no TLS, state in memory) and full (TLS, node
authentication, SQLite), prints a table and writes JSON. One message with a 100 kB array goes to every node and one such
array comes back. "stock" is `flower-supernode` and Flower's own waiting; "resident" is fedloom's client and polling. Both
run the same ClientApp, which imports the modules of fedloom's clients; "stock, light app" and "resident, light app" are
the same clients with a ClientApp that imports nothing. The difference is the cost of imports, the rest that of waiting.

`--channels memory` (TLS, node authentication, state in memory) is what `fedloom up` and `serve` use. The JSON has the
seconds a round per client, by least squares, the memory of the SuperLink at the start and the end of the rounds, and the calls
of a resident client in a round by kind. The server's app makes as many again.
"""

import argparse
import math
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from studies.harness.noop_federation import CHANNELS, CLIENTS, Case, Timing, measure
from studies.speed import timing

TARGET = {"bare": 50.0, "full": 20.0}
"""Times less than stock, by channel."""

LIMIT = {8: 0.4, 32: 1.6, 64: 3.2}
"""Number of resident clients -> maximum median seconds per round, with the state in memory."""


def main() -> int:
    """Measure, print and write; return 1 if `--check` finds a missed limit."""
    options = _options()
    timings = []
    for channel in options.channels:
        for clients in options.clients:
            for client in options.only:
                rounds = options.rounds if client.startswith("resident") else options.stock_rounds
                timings.append(measure(Case(client, clients, channel, rounds)))
                print(f"{client} {clients} {channel}: {timings[-1].median:.3f} s", file=sys.stderr)
    _print_table(timings)
    rows = [{**asdict(t), "median": t.median} for t in timings]
    about = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "array_bytes": 100_000}
    timing.write(options.out, {**about, "per_client": slopes(timings), "rows": rows}, "flwr")
    return int(options.check and any(is_late(t) for t in timings))


def slopes(timings: Sequence[Timing]) -> dict[str, float]:
    """Return the seconds a round per client of each kind and channel with several numbers of clients."""
    points: dict[str, list[tuple[int, float]]] = {}
    for t in timings:
        points.setdefault(f"{t.client}, {t.channel}", []).append((t.clients, t.median))
    return {
        name: statistics.linear_regression(*zip(*line, strict=True)).slope for name, line in points.items() if line[1:]
    }


def is_late(t: Timing) -> bool:
    """Return True if a round of resident clients took longer than its limit, with the state in memory."""
    return t.client.startswith("resident") and t.channel == "memory" and t.median > LIMIT.get(t.clients, math.inf)


def _print_table(timings: list[Timing]) -> None:
    table = Table("channel", "clients", "client", "median s", "min s", "max s", "times less", "target", "MB", "calls")
    stock = {(t.channel, t.clients): t.median for t in timings if t.client == "stock"}
    for t in timings:
        base = stock.get((t.channel, t.clients))
        gain = f"{base / t.median:.0f}" if base and t.client == "resident" else ""
        target = f"{TARGET[t.channel]:.0f}" if gain and t.channel in TARGET else ""
        megabytes = " to ".join(f"{value:.0f}" for value in t.superlink_mb)
        calls = f"{sum(t.calls.values()):.1f}" if t.calls else ""
        row = (f"{t.median:.3f}", f"{min(t.seconds):.3f}", f"{max(t.seconds):.3f}", gain, target, megabytes, calls)
        table.add_row(t.channel, str(t.clients), t.client, *row)
    Console().print(table)


def _options() -> argparse.Namespace:
    parser = timing.options(__doc__, "round_latency")
    parser.add_argument("--clients", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--channels", nargs="+", choices=CHANNELS, default=list(TARGET))
    parser.add_argument("--only", nargs="+", choices=CLIENTS, default=CLIENTS[:3])
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the resident client")
    parser.add_argument("--stock-rounds", type=int, default=4)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    return parser.parse_args()
