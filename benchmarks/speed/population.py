"""Whole populations in one process: processor time of an update, and memory of a client.

`python -m benchmarks speed population --clients 500 2000` runs FedRule on demo homes, one client each, in a process of its
own for each number of clients. An update is one train request with its reply and its share of the server's step; its
processor time depends little on other work of the machine. The last column is what the 76,218 homes of FedRule's paper
would take at the largest number's cost. With `--check`, a missed limit is exit status 1. Prints a table and writes JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import torch
from flwr.app import Message

from benchmarks.speed import timing
from client.data.read import partition, read_all
from client.tasks.registry import CLIENT_TASKS
from common.config.parse import parse
from common.wire.messages import ENROL, EVALUATE, TRAIN
from deploy.simulated_session import open_sessions
from deploy.simulation import InProcessGrid
from server.run import run

HOMES, TRAINED = 76_218, 73_700
"""Homes of the paper, and those of them with a rule to train on."""

LIMITS = {"seconds_of_all": 30.0, "gb_of_all": 12.0, "growth": 1.15}
"""Largest time of a round and memory of all homes, and cost at most clients over that at fewest."""

MEGABYTE = 2**20


class MeasuredGrid(InProcessGrid):
    """Grid that records processor time and memory before and after each exchange."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.marks: list[tuple[str, int, float, float]] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer the messages between two marks."""
        messages = list(messages)
        kind = messages[0].metadata.message_type if messages else ""
        self._mark(kind, len(messages))
        identities = super().push_messages(messages)
        self._mark(f"after {kind}", len(messages))
        return identities

    def per_message(self, kind: str, end: str) -> float:
        """Return the median milliseconds of a message from the start of its exchanges to the next mark `end`."""
        spans = []
        for k, (name, count, start, _) in enumerate(self.marks):
            until = [mark[2] for mark in self.marks[k + 1 :] if mark[0] == end]
            if name == kind and until:
                spans.append(1000 * (until[0] - start) / count)
        return statistics.median(spans[1:] or spans)

    def memory(self) -> float:
        """Return the largest resident memory after an exchange, in MB."""
        return max(mark[3] for mark in self.marks)

    def _mark(self, kind: str, count: int) -> None:
        self.marks.append((kind, count, time.process_time(), psutil.Process().memory_info().rss / MEGABYTE))


def measure(clients: int, rounds: int, together: int) -> dict[str, float | str]:
    """Return the figures of one run in this process."""
    config = parse({"run-id": "population", "rounds": rounds, "evaluate-every": 10**6, "federation.deadline": 3600.0})
    before = psutil.Process().memory_info().rss / MEGABYTE
    parts = partition(read_all("rules", f"demo:0-{clients}"), 0, unit=CLIENT_TASKS["rules"].unit)
    sessions, _ = open_sessions(parts)
    grid = MeasuredGrid(sessions, together)
    with tempfile.TemporaryDirectory() as folder:
        result = run(grid, config, Path(folder))
    update = grid.per_message(TRAIN, TRAIN)
    per_client = (grid.memory() - before) / clients
    return {
        "clients": clients,
        "ms_cpu_per_update": update,
        "ms_cpu_per_enrolment": grid.per_message(ENROL, f"after {ENROL}"),
        "ms_cpu_per_evaluation": grid.per_message(EVALUATE, f"after {EVALUATE}"),
        "mb_per_client": per_client,
        "peak_mb": grid.memory(),
        "seconds_of_all": update * TRAINED / 1000,
        "gb_of_all": per_client * HOMES / 1024,
        "model_sha256": result.model_sha256,
    }


def main() -> None:
    """Measure each number of clients in a process of its own; print, write, check."""
    parser = timing.options(__doc__, "population")
    parser.add_argument("--clients", type=int, nargs="+", default=[500, 2000], help="numbers of homes, ascending")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the first is not timed")
    parser.add_argument("--together", type=int, default=0, help="clients that train stacked; 0 chooses")
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    parser.add_argument("--inner", action="store_true", help="measure in this process; print JSON")
    options = parser.parse_args()
    if options.inner:
        torch.set_num_threads(1)
        print(json.dumps(measure(options.clients[0], options.rounds, options.together)))
        return
    rows = [_measure_apart(clients, options.rounds, options.together) for clients in options.clients]
    print("| clients | ms an update | ms an enrolment | ms an evaluation | MB a client | 76,218 homes |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        figures = [row[f"ms_cpu_per_{part}"] for part in ("update", "enrolment", "evaluation")]
        text = " | ".join(f"{figure:.2f}" for figure in (*figures, row["mb_per_client"]))
        print(f"| {row['clients']:,} | {text} | {row['seconds_of_all']:.0f} s, {row['gb_of_all']:.1f} GB |")
    growth = rows[-1]["ms_cpu_per_update"] / rows[0]["ms_cpu_per_update"]
    load = os.getloadavg()[0]
    timing.write(options.out, {"rows": rows, "growth": growth, "load": load, "command": sys.argv[1:]}, "torch", "flwr")
    reached = {**rows[-1], "growth": growth}
    missed = {name: reached[name] for name, limit in LIMITS.items() if reached[name] > limit}
    for name, figure in missed.items():
        print(f"{name} is {figure:.3g}, at most {LIMITS[name]:g}", file=sys.stderr)
    if options.check and missed:
        sys.exit(1)


def _measure_apart(clients: int, rounds: int, together: int) -> dict[str, Any]:
    own = ["--inner", "--clients", str(clients), "--rounds", str(rounds), "--together", str(together)]
    command = [sys.executable, "-m", "benchmarks", "speed", "population", *own]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))
