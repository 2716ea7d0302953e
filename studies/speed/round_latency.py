"""Time of a round with clients that do nothing, through the door.

`python -m studies speed round_latency` measures 2, 8 and 64 clients with TLS, node keys and the state in memory, as
`fedloom up` and `serve` have it, prints a table and writes JSON. `--channels` measures others: bare (no TLS) and full
(SQLite). One message with a 100 kB array goes to every node and one such array comes back. "resident" imports the modules
of fedloom's clients, "resident, light app" nothing. The JSON has the seconds a round per client, by least squares, and the
memory of the SuperLink, in whose process the door lives, at the start and the end of the rounds.

`--before PATH` measures another checkout too, in turn with this one, and prints the median of the ratios.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from studies.harness.noop_federation import CHANNELS, CLIENTS, Case, Timing, measure
from studies.speed import timing

LIMIT = {2: 0.03, 8: 0.06, 64: 0.25, 500: 2.0}
"""Number of resident clients -> maximum median seconds per round, with the state in memory."""


def main() -> int:
    """Measure, print and write; return 1 if `--check` finds a missed limit."""
    options = _options()
    timings, ratios = list[Timing](), dict[str, float]()
    cases = [Case(one, n, c, options.rounds) for c in options.channels for n in options.clients for one in options.only]
    for case in cases:
        pairs = [(_measure_in(options.before, case), measure(case)) for _ in range(options.turns)]
        timings.append(min((now for _, now in pairs), key=lambda timing: timing.median))
        print(f"{case.client} {case.clients} {case.channel}: {timings[-1].median:.3f} s", file=sys.stderr)
        if before := [(old, now.median) for old, now in pairs if old]:
            ratios[str(case.clients)] = timing.median_ratio(*zip(*before, strict=True))
            print(f"  before {[round(old, 3) for old, _ in before]}, {ratios[str(case.clients)]:.1f} times less")
    _print_table(timings)
    rows = [{**asdict(t), "median": t.median} for t in timings]
    about = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "array_bytes": 100_000, "ratios": ratios}
    timing.write(options.out, {**about, "per_client": slopes(timings), "rows": rows}, "flwr")
    return int(options.check and any(is_late(t) for t in timings))


def _measure_in(checkout: Path | None, case: Case) -> float:
    """Return the median seconds of a case in another checkout; 0 without one."""
    if checkout is None:
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        words = ["-m", "studies", "speed", "round_latency", "--channels", case.channel, "--only", case.client]
        words += ["--clients", str(case.clients), "--rounds", str(case.rounds), "--out", str(out)]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        subprocess.run([sys.executable, *words], cwd=checkout, env=environment, check=True, capture_output=True)
        return float(json.loads(out.read_text())["rows"][0]["median"])


def slopes(timings: Sequence[Timing]) -> dict[str, float]:
    """Return the seconds a round per client of each kind and channel with several numbers of clients."""
    points: dict[str, list[tuple[int, float]]] = {}
    for t in timings:
        points.setdefault(f"{t.client}, {t.channel}", []).append((t.clients, t.median))
    return {
        name: statistics.linear_regression(*zip(*line, strict=True)).slope for name, line in points.items() if line[1:]
    }


def is_late(t: Timing) -> bool:
    """Return True if a round took longer than its limit, with the state in memory."""
    return t.channel == "memory" and t.median > LIMIT.get(t.clients, math.inf)


def _print_table(timings: list[Timing]) -> None:
    table = Table("channel", "clients", "client", "median s", "min s", "max s", "MB")
    for t in timings:
        megabytes = " to ".join(f"{value:.0f}" for value in t.superlink_mb)
        row = (f"{t.median:.3f}", f"{min(t.seconds):.3f}", f"{max(t.seconds):.3f}", megabytes)
        table.add_row(t.channel, str(t.clients), t.client, *row)
    Console().print(table)


def _options() -> argparse.Namespace:
    parser = timing.options(__doc__, "round_latency")
    parser.add_argument("--clients", type=int, nargs="+", default=[2, 8, 64])
    parser.add_argument("--channels", nargs="+", choices=CHANNELS, default=["memory"])
    parser.add_argument("--only", nargs="+", choices=CLIENTS, default=CLIENTS[1:])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--before", type=Path, metavar="PATH", help="another checkout to compare with")
    parser.add_argument("--turns", type=int, default=1, help="turns of each case")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    return parser.parse_args()
