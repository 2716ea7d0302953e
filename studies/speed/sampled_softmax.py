"""Rounds of sessions with sampled and with full softmax: bytes, processor time, memory.

`python -m studies speed sampled_softmax` runs FedGA on generated clicks, 100 clients of 60 sessions over 11,000 items, with
either loss, and 1,000 clients of 20 sessions over 40,000 items with sampled softmax, 100 of them a round. Each run has a
process of its own. Times are processor seconds from one round to the next, with the server's step and without evaluation.
With `--check`, a missed limit is exit status 1. Prints a table and writes JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from client.data.read import partition
from client.tasks.registry import CLIENT_TASKS
from client.tasks.sessions.data.visitors import Visitor, Visits
from common.config.parse import parse
from common.options import Scalar
from common.tasks.sessions.vocabulary import Items
from common.wire.messages import TRAIN
from deploy.simulation.clients import open_sessions
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.harness.measured_grid import MeasuredGrid
from studies.harness.peak_memory import peak_megabytes
from studies.speed import timing

LIMITS = {"bytes": 10.0, "seconds": 5.0, "peak_mb": 2048.0}
"""Smallest ratios of full to sampled, and largest memory of the large run."""

SHOP = {"items": 11_000, "clients": 100, "sessions": 60, "cohort": 1.0}
LARGE = {"items": 40_000, "clients": 1_000, "sessions": 20, "cohort": 0.1}

LONGEST = 20
"""Largest number of clicks of a session."""


def generate(items: int, clients: int, sessions: int) -> Visits:
    """Return clients with sessions of 4.2 clicks on average, whose items follow Zipf's law."""
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, items + 1)
    visitors = []
    for k in range(clients):
        lengths = np.minimum(1 + rng.geometric(1 / 3.23, sessions), LONGEST)
        clicks = rng.choice(items, lengths.sum(), p=popularity / popularity.sum())
        visitors.append(Visitor(f"visitor {k}", tuple(np.split(clicks, np.cumsum(lengths)[:-1]))))
    return Visits(tuple(visitors), Items(items=tuple(f"item {j}" for j in range(items))))


def measure(loss: str, rounds: int, *, items: int, clients: int, sessions: int, cohort: float) -> dict[str, float]:
    """Return the figures of one run in this process."""
    data = generate(items, clients, sessions)
    parts = partition(data, 0, unit=CLIENT_TASKS["sessions"].unit)
    opened, _ = open_sessions(parts)
    grid = MeasuredGrid(opened, 0)
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Path(folder) / "items.json"
        catalogue.write_text(data.vocabulary.to_json(), "utf-8")
        flat: dict[str, Scalar] = {
            "task": "sessions",
            "method": "fedga",
            "run-id": "shop",
            "rounds": rounds,
            "catalogue": str(catalogue),
        }
        flat |= {"evaluate-every": rounds, "federation.cohort": cohort, "federation.deadline": 3600.0}
        run(grid, parse(flat | {"tasks.sessions.loss": loss}), Path(folder))
        done = [event for event in RunDirectory(Path(folder), "shop").events() if isinstance(event, RoundEvent)]
    answered = statistics.median(event.answered for event in done)
    return {
        "answered": answered,
        "kb_up_per_client": statistics.median(event.bytes_up / event.answered for event in done) / 1000,
        "cpu_seconds_per_round": grid.spans(TRAIN, TRAIN)[0] * answered / 1000,
        "seconds_per_round": statistics.median(event.seconds for event in done[:-1]),
        "peak_mb": peak_megabytes(),
    }


def main() -> None:
    """Measure each run in a process of its own; print, write, check."""
    parser = timing.options(__doc__, "sampled_softmax")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of a run; the last one is not timed")
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    parser.add_argument("--inner", default="", help="measure one run in this process; print JSON")
    options = parser.parse_args()
    if options.inner:
        torch.set_num_threads(1)
        print(json.dumps(measure(rounds=options.rounds, **json.loads(options.inner))))
        return
    rows = [_measure_apart(options.rounds, one) for one in _runs()]
    _, full, sampled = rows
    ratios = {
        "bytes": full["kb_up_per_client"] / sampled["kb_up_per_client"],
        "seconds": full["cpu_seconds_per_round"] / sampled["cpu_seconds_per_round"],
        "peak_mb": rows[0]["peak_mb"],
    }
    print("| softmax | items | clients a round | kB up a client | CPU s a round | peak MB |\n|---|---|---|---|---|---|")
    for row in rows:
        figures = f"{row['kb_up_per_client']:,.0f} | {row['cpu_seconds_per_round']:.2f} | {row['peak_mb']:,.0f}"
        print(f"| {row['loss']} | {row['items']:,} | {row['answered']:.0f} | {figures} |")
    document = {"rows": rows, "ratios": ratios, "cores": psutil.cpu_count(), "load": os.getloadavg()[0]}
    timing.write(options.out, document, "torch", "numpy", "flwr")
    missed = {name for name, limit in LIMITS.items() if (ratios[name] > limit) == (name == "peak_mb")}
    for name in sorted(missed):
        print(f"{name} is {ratios[name]:.3g}, the limit is {LIMITS[name]:g}", file=sys.stderr)
    if options.check and missed:
        sys.exit(1)


def _runs() -> tuple[dict[str, Any], ...]:
    return {"loss": "sampled", **LARGE}, {"loss": "full", **SHOP}, {"loss": "sampled", **SHOP}


def _measure_apart(rounds: int, settings: dict[str, Any]) -> dict[str, Any]:
    own = ["--inner", json.dumps(settings), "--rounds", str(rounds)]
    command = [sys.executable, "-m", "studies", "speed", "sampled_softmax", *own]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return {**settings, **json.loads(done.stdout.splitlines()[-1])}


if __name__ == "__main__":
    main()
