"""Rounds of `fedloom up` with two helpers and without: real processes, TLS, and the same clients."""

import tempfile
from pathlib import Path
from statistics import median

from common.config.parse import parse
from common.models import build_model, parameters
from common.options import Scalar
from common.tasks.registry import TASKS, demo_vocabulary
from studies.faults.federation import Federation

CLIENTS, ROUNDS, TURNS = 8, 20, 3
WIDTH: dict[str, Scalar] = {"tasks.rules.hidden": 50}
"""Options of both runs: updates of about `TARGET` numbers, and no counts.

Runs with helpers alone would sum counts.
"""

TARGET = 26_000
"""Numbers in an update for which the limit holds."""

OPTIONS: dict[str, tuple[str, ...]] = {"without": (), "with two helpers": ("--helpers", "2")}
"""Name of a run -> its further options of `up`."""


def count_numbers() -> int:
    """Return the number of numbers in an update."""
    config, spec = parse({"method": "fedavg", "task": "rules", **WIDTH}), TASKS["rules"]
    model = build_model(spec, config.task_run(spec, demo_vocabulary("rules")))
    return sum(a.size for a in parameters(model).values())


def measure_rounds() -> dict[str, list[float]]:
    """Return the median seconds of a round of each run, by name; the runs take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in OPTIONS}
    for _ in range(TURNS):
        for name, further in OPTIONS.items():
            seconds[name].append(_run(further))
            print(f"{name}: {seconds[name][-1]:.2f} s a round", flush=True)
    return seconds


def _run(further: tuple[str, ...]) -> float:
    words = ["--method", "fedavg", "--clients", str(CLIENTS), "--rounds", str(ROUNDS), "--seed", "1"]
    words += [word for key, value in WIDTH.items() for word in ("--set", f"{key}={str(value).lower()}")]
    with tempfile.TemporaryDirectory() as folder:
        federation = Federation(Path(folder), (*words, "--no-alone", "--patience", "0", *further))
        federation.start()
        try:
            federation.wait(lambda: federation.command.poll() is not None)
        finally:
            federation.close()
        return float(median(event["seconds"] for event in federation.rounds()[1:]))  # in the first, processes start
