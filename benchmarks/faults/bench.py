"""Runs with faults at random moments, and the same runs without."""

import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.faults.federation import RUN, Federation, StuckError
from benchmarks.faults.kinds import KINDS, OWN_SECONDS
from deploy.flower_programs import flower_environment

CLIENTS = 3
ROUNDS_BETWEEN = 2  # whole rounds between two faults
MOST_DELAY_SECONDS = 1.0  # a fault strikes up to so long after a round line


@dataclass(frozen=True)
class Plan:
    """Faults of one run.

    Args:
        task: Task of the run, with its embedded data and default method.
        faults: Names of faults in the order in which they strike.
        epsilon: Privacy budget of a run with noise, 0 without.
    """

    task: str
    faults: tuple[str, ...]
    epsilon: float = 0.0

    @property
    def rounds(self) -> int:
        """Number of rounds, enough for all faults and some after the last."""
        return (ROUNDS_BETWEEN + 3) * len(self.faults) + 3

    @property
    def options(self) -> tuple[str, ...]:
        """Options of `up` and of `simulate`."""
        size = ("--clients", str(CLIENTS), "--rounds", str(self.rounds), "--seed", "0", "--patience", "0")
        return "--task", self.task, *size, *(("--epsilon", str(self.epsilon)) if self.epsilon else ())

    @property
    def is_comparable(self) -> bool:
        """Return True if the model must equal that of the run without faults."""
        return "client" not in self.faults and not self.epsilon


@dataclass(frozen=True)
class Stall:
    """Time until the next round line after a fault, without the usual time of a round and the fault's own."""

    fault: str
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """Run with faults, compared with the unbroken run."""

    task: str
    rounds: int
    stalls: tuple[Stall, ...]
    status: str
    lines_lost: int
    lines_twice: int
    processes_left: int
    same_model: bool
    comparable: bool
    releases: int = 0
    unrecorded: int = 0
    reason: str = ""


def strike(federation: Federation, plan: Plan, rng: random.Random, until: float) -> Iterator[Stall]:
    """Inflict the faults of a plan one after the other, until the time is over."""
    usual = 1.0
    for name in plan.faults:
        federation.wait(partial(federation.has_rounds, len(federation.rounds()) + ROUNDS_BETWEEN))
        if time.monotonic() > until:
            return
        times = [event["time"] for event in federation.rounds()]
        usual = statistics.median([b - a for a, b in pairwise(times)] or [usual])
        time.sleep(rng.uniform(0, min(MOST_DELAY_SECONDS, usual)))
        yield _stall(federation, name, usual)


def _stall(federation: Federation, name: str, usual: float) -> Stall:
    began, before = time.time(), len(federation.rounds())
    fault = threading.Thread(target=KINDS[name], args=(federation,))
    fault.start()
    federation.wait(lambda: len(federation.rounds()) > before + 1)  # the first may have been under way
    fault.join()
    times = [began, *(event["time"] for event in federation.rounds()[before:])]
    gap = max(b - a for a, b in pairwise(times))
    return Stall(name, round(max(gap - usual - OWN_SECONDS.get(name, 0.0), 0.0), 2))


def measure(plan: Plan, folder: Path, seed: int, until: float) -> Outcome:
    """Return the outcome of a plan."""
    federation = Federation(folder / plan.task, plan.options)
    federation.start()
    stalls: list[Stall] = []
    reason, left = "", 0
    try:
        for stall in strike(federation, plan, random.Random(f"{seed} {plan.task}"), until):
            stalls.append(stall)
            print(plan.task, stall, flush=True)
        federation.wait(lambda: federation.command.poll() is not None)
    except StuckError as error:
        reason = str(error)
    finally:
        left = federation.close()
    numbers, result = [event["round"] for event in federation.rounds()], federation.result()
    whole = unbroken_model(plan, folder) if result and plan.is_comparable else ""
    releases, unrecorded = federation.releases() if plan.epsilon else (0, 0)
    return Outcome(
        task=plan.task,
        rounds=plan.rounds,
        stalls=tuple(stalls),
        status=result.get("status", "lost"),
        lines_lost=len(set(range(1, result.get("rounds_done", plan.rounds) + 1)) - set(numbers)),
        lines_twice=len(numbers) - len(set(numbers)),
        processes_left=left,
        same_model=bool(whole) and result.get("model_sha256") == whole,
        comparable=plan.is_comparable,
        releases=releases,
        unrecorded=unrecorded,
        reason=reason,
    )


def unbroken_model(plan: Plan, folder: Path) -> str:
    """Return the hash of the model that the run without faults trains."""
    words = [sys.executable, "-m", "deploy.cli", "simulate", *plan.options, "--together", "1", "--json"]
    environment = flower_environment({"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())})
    work = folder / f"{plan.task}-unbroken"
    work.mkdir(parents=True)
    done = subprocess.run([*words, "--run-id", RUN], cwd=work, env=environment, capture_output=True, check=True)
    return str(json.loads(done.stdout)["model_sha256"])


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Return the outcomes as JSON objects."""
    return [asdict(outcome) for outcome in outcomes]
