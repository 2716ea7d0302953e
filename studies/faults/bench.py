"""Runs with a fault at a random moment, and the same runs without."""

import json
import random
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from deploy.federation.fork_server import flower_environment
from studies.faults.apart import Served, Submitted
from studies.faults.federation import RUN, WAIT_SECONDS, Federation, StuckError
from studies.faults.kinds import KINDS, OWN_SECONDS

CLIENTS = 3
ROUNDS = 10
MOST_ROUNDS_BEFORE = 5  # rounds before the fault, at most; at least two, which give the usual time of a round
MOST_DELAY_SECONDS = 1.0  # a fault strikes up to so long after a round line

FEDERATIONS: dict[str, type[Federation]] = {"serve": Served, "SuperExec": Submitted}
"""Fault -> federation that it strikes, if that is not one of `up`."""


@dataclass(frozen=True)
class Plan:
    """One fault in a run of its own.

    Args:
        task: Task of the run, with its embedded data and default method.
        fault: Name of the fault.
        epsilon: Privacy budget of a run with noise, 0 without.
    """

    task: str
    fault: str
    epsilon: float = 0.0

    @property
    def options(self) -> tuple[str, ...]:
        """Options of `up`, `serve`, `submit` and `simulate`."""
        size = ("--clients", str(CLIENTS), "--rounds", str(ROUNDS), "--seed", "0", "--patience", "0")
        noise = ("--epsilon", str(self.epsilon), "--set", "privacy.accept-noise=true") if self.epsilon else ()
        return "--task", self.task, *size, *noise

    @property
    def is_comparable(self) -> bool:
        """Return True if the model must equal that of the run without faults."""
        return self.fault != "client" and not self.epsilon


@dataclass(frozen=True)
class Outcome:
    """Run with a fault, compared with the unbroken run.

    `stall` is the time in seconds without a round line after the fault, less the usual time of a round and the
    fault's own; `WAIT_SECONDS` if there was no further line.
    """

    task: str
    fault: str
    stall: float
    status: str
    rounds: int
    lines_lost: int
    lines_twice: int
    processes_left: int
    same_model: bool
    comparable: bool
    releases: int = 0
    unrecorded: int = 0
    reason: str = ""
    rounds_lost: int = 0
    restarts: int = 0
    """Commands of a service manager."""


def measure(plan: Plan, folder: Path, rng: random.Random, unbroken: str) -> Outcome:
    """Return the outcome of a plan, run in `folder`; `unbroken` is the hash of the unbroken model."""
    federation = FEDERATIONS.get(plan.fault, Federation)(folder, plan.options)
    federation.start()
    stall, reason, left = WAIT_SECONDS, "", 0
    try:
        stall = strike(federation, plan.fault, rng)
        federation.wait(lambda: federation.command.poll() is not None)
    except StuckError as error:
        reason = str(error)
    finally:
        left = federation.close()
    numbers, result = [event["round"] for event in federation.rounds()], federation.result()
    releases, unrecorded = federation.releases() if plan.epsilon else (0, 0)
    return Outcome(
        task=plan.task,
        fault=plan.fault,
        stall=stall,
        status=result.get("status", "lost"),
        rounds=ROUNDS,
        lines_lost=len(set(range(1, result.get("rounds_done", ROUNDS) + 1)) - set(numbers)),
        lines_twice=len(numbers) - len(set(numbers)),
        processes_left=left,
        same_model=plan.is_comparable and result.get("model_sha256") == unbroken,
        comparable=plan.is_comparable,
        releases=releases,
        unrecorded=unrecorded,
        reason=reason,
        rounds_lost=ROUNDS - result.get("rounds_done", 0),
        restarts=federation.restarts,
    )


def strike(federation: Federation, fault: str, rng: random.Random) -> float:
    """Inflict a fault at a random moment; return the stall in seconds."""
    federation.wait(partial(federation.has_rounds, rng.randint(2, MOST_ROUNDS_BEFORE)))
    usual: float = statistics.median(b - a for a, b in pairwise(event["time"] for event in federation.rounds()))
    time.sleep(rng.uniform(0, min(MOST_DELAY_SECONDS, usual)))
    began, before = time.time(), len(federation.rounds())
    with ThreadPoolExecutor(1) as thread:
        struck = thread.submit(KINDS[fault], federation)
        federation.wait(lambda: len(federation.rounds()) > before + 1)  # the first may have been under way
        struck.result()
    times = [began, *(event["time"] for event in federation.rounds()[before:])]
    gap: float = max(b - a for a, b in pairwise(times))
    return round(max(gap - usual - OWN_SECONDS.get(fault, 0.0), 0.0), 2)


def unbroken_model(plan: Plan, folder: Path) -> str:
    """Return the hash of the model that the run without faults trains."""
    words = [sys.executable, "-m", "deploy.cli", "simulate", *plan.options, "--no-alone", "--together", "1", "--json"]
    environment = flower_environment({"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())})
    folder.mkdir(parents=True)
    done = subprocess.run([*words, "--run-id", RUN], cwd=folder, env=environment, capture_output=True, check=True)
    return str(json.loads(done.stdout)["model_sha256"])
