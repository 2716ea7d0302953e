"""Command line of the faults benchmark: `python -m benchmarks.faults run|page`."""

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.faults.bench import Plan, as_json, measure
from benchmarks.faults.page import write_page

RESULTS, PAGE = Path("docs/results/faults.json"), Path("docs/results/faults.md")
SERVER_KINDS = ("ServerApp", "SuperLink", "up", "everything")
TASKS = ("rules", "sessions", "traffic", "markets", "ratings")
"""Tasks of the runs in turn; clients are killed in each second run."""

EPSILON = {"ratings": 100.0}
"""Task -> privacy budget of its run with noise, whose ledgers are counted."""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("command", choices=("run", "page"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pauses", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=15.0, help="no fault strikes after this time")
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    PAGE.write_text(write_page(json.loads(RESULTS.read_text())), "utf-8")
    print(PAGE)


def run(options: argparse.Namespace) -> None:
    """Measure all plans, and store the outcomes after each."""
    start, outcomes, loads = time.monotonic(), [], []
    plans = make_plans(options.tasks, options.kills, options.pauses, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        for number, plan in enumerate(plans, 1):
            until = start + 60 * options.minutes * number / len(plans)
            outcomes.append(measure(plan, Path(folder), options.seed, until))
            loads.append(os.getloadavg()[0])
            print(outcomes[-1], flush=True)
            about = {"seed": options.seed, "cores": os.cpu_count(), "load": round(statistics.mean(loads), 1)}
            stored = {**about, "date": time.strftime("%Y-%m-%d"), "runs": as_json(outcomes)}
            RESULTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


def make_plans(tasks: list[str], kills: int, pauses: int, seed: int) -> list[Plan]:
    """Return one plan a task; kills of clients alone fall into each second one."""
    share, clients = -(-kills // len(tasks)), max(1, kills // len(SERVER_KINDS) // max(len(tasks) // 2, 1))
    plans = []
    for number, task in enumerate(tasks):
        own = min(share, kills - number * share)
        alone = min(clients, own) if number % 2 else 0
        faults = ["client"] * alone + [SERVER_KINDS[k % len(SERVER_KINDS)] for k in range(own - alone)]
        faults += ["pause"] * (pauses // len(tasks) + (number < pauses % len(tasks)))
        random.Random(seed + number).shuffle(faults)
        plans.append(Plan(task, tuple(faults), EPSILON.get(task, 0.0)))
    return plans


if __name__ == "__main__":
    main()
