"""Bytes and quality of runs whose updates are rounded: float16 and 8-bit codes against float32.

`python -m studies speed encodings` trains each task's default method on demo data, with each encoding and each of three
seeds. Bytes are those of all replies of a run, quality is the metric of the task's verdict. The range of the metric over
seeds with float32 is the yardstick. Prints a table and writes JSON.
"""

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any, get_args

from client.data.read import read_all
from client.tasks.registry import CLIENT_TASKS
from common.config.federation import Encoding
from common.config.parse import parse
from common.tasks.registry import TASKS
from deploy.simulation.grid import simulate
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from studies.speed import timing

ENCODINGS = get_args(Encoding)

CLIENTS = 100
"""Largest number of units of demo data."""


def measure(task: str, encoding: str, rounds: int, seed: int) -> tuple[float, float]:
    """Return the megabytes of all replies of a run, and its metric."""
    spec, units = TASKS[task], min(CLIENTS, CLIENT_TASKS[task].demo_units)
    flat = {**spec.trained, "task": task, "run-id": "encoded", "rounds": rounds, "seed": seed}
    flat |= {"evaluate-every": rounds, "federation.encoding": encoding, "federation.deadline": 3600.0}
    with tempfile.TemporaryDirectory() as folder:
        data = read_all(task, f"demo:0-{units}", seed)
        result = simulate(parse(flat), data, Path(folder))
        done = [event for event in RunDirectory(Path(folder), "encoded").events() if isinstance(event, RoundEvent)]
    return sum(event.bytes_up for event in done) / 1e6, result.metrics[spec.objective.metric]


def describe(task: str, encoding: str, runs: list[tuple[float, float]]) -> dict[str, Any]:
    """Return the row of one task and encoding."""
    return {
        "task": task,
        "encoding": encoding,
        "mb_up": statistics.mean(size for size, _ in runs),
        "metric": TASKS[task].objective.metric,
        "values": [value for _, value in runs],
    }


def main() -> None:
    """Train, print, write."""
    parser = timing.options(__doc__, "encodings")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    timing.use_few_threads()
    print("| task | encoding | MB up | share | metric | mean | range over seeds |\n|---|---|---|---|---|---|---|")
    rows: list[dict[str, Any]] = []
    for task in options.tasks:
        for encoding in ENCODINGS:
            seeds = range(options.seeds)
            row = describe(task, encoding, [measure(task, encoding, options.rounds, seed) for seed in seeds])
            whole = next((one["mb_up"] for one in rows if one["task"] == task), row["mb_up"])
            rows.append(row | {"share": row["mb_up"] / whole})
            values = row["values"]
            figures = f"{statistics.mean(values):.4g} | {min(values):.4g} to {max(values):.4g}"
            cells = f"{row['mb_up']:.2f} | {rows[-1]['share']:.2f} | {row['metric']} | {figures}"
            print(f"| {task} | {encoding} | {cells} |", flush=True)
    timing.write(options.out, {"rows": rows, "rounds": options.rounds, "cores": os.cpu_count()}, "torch", "flwr")


if __name__ == "__main__":
    main()
