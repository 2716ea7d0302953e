"""Command line of the faults benchmark: `python -m studies.faults run|attacks|page`."""

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.faults.attacks import ATTACKS
from studies.faults.bench import FEDERATIONS, Plan, measure, unbroken_model
from studies.faults.kinds import KINDS
from studies.faults.page import write_page
from studies.faults.siege import FAULTS, age, besiege

RESULTS, PAGE = Path("docs/results/faults.json"), Path("docs/results/faults.md")
SIEGES = Path("docs/results/attacks.json")
APART = tuple(name for name in KINDS if name in FEDERATIONS)
KILLS = tuple(name for name in KINDS if name not in (*APART, "pause"))
AGE = "500 rounds"
TASKS = ("rules", "sessions", "traffic", "markets", "ratings")

EPSILON = {"ratings": 100.0}
"""Task -> privacy budget of its runs with noise, whose ledgers are counted."""
NOISED = "rules"
"""Another task with runs with noise, of every kind in turn, beside those without."""
NOISED_EPSILON = 100.0


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m studies.faults", description=__doc__)
    parser.add_argument("command", choices=("run", "attacks", "page"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--pauses", type=int, default=20)
    parser.add_argument("--apart", type=int, default=20, help="kills of runs whose clients are commands of their own")
    parser.add_argument("--noised", type=int, default=10, help="kills of runs with noise of one more task")
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="keep the stored outcomes of a study that was stopped")
    parser.add_argument(
        "--again", nargs="+", default=(), choices=KINDS, help="measure these faults anew; keep the others"
    )
    parser.add_argument("--kinds", nargs="+", default=(*ATTACKS, *FAULTS, AGE), help="attacks to measure anew")
    parser.add_argument("--turns", type=int, default=2, help="attacks of a kind in a run, with calm between them")
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    if options.command == "attacks":
        attack(options.kinds, options.turns)
    PAGE.write_text(write_page(json.loads(RESULTS.read_text()), json.loads(SIEGES.read_text())), "utf-8")
    print(PAGE)


def attack(kinds: Sequence[str], turns: int) -> None:
    """Measure attacks, and store the row of each in place of an earlier one."""
    stored = json.loads(SIEGES.read_text()) if SIEGES.exists() else {"rows": {}, "ages": []}
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            if kind == AGE:
                stored["ages"] = age(Path(folder) / "run")
            else:
                stored["rows"][kind] = asdict(besiege(kind, Path(folder) / "run", turns))
        print(kind, stored["ages"] if kind == AGE else stored["rows"][kind], flush=True)
        stored["rows"] = {one: stored["rows"][one] for one in (*ATTACKS, *FAULTS) if one in stored["rows"]}
        about = {"cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
        SIEGES.write_text(f"{json.dumps({**stored, **about}, indent=1)}\n", "utf-8")


def run(options: argparse.Namespace) -> None:
    """Measure all plans, and store the outcomes after each, one a line."""
    outcomes: list[dict[str, Any]] = []
    loads: list[float] = []
    if options.resume or options.again:
        stored = json.loads(RESULTS.read_text())
        outcomes, loads = stored["runs"], [stored["load"]] * len(stored["runs"])
    plans = make_plans(options.tasks, options.kills, options.pauses, options.seed)
    plans += make_further_plans(options.tasks, options.apart, options.noised)
    whole: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, plan in enumerate(plans):
            if number < len(outcomes) and plan.fault not in options.again:
                continue
            if plan.is_comparable and plan.task not in whole:
                whole[plan.task] = unbroken_model(plan, Path(folder) / plan.task)
            rng = random.Random(f"{options.seed} {number}")
            outcome = asdict(measure(plan, Path(folder) / str(number), rng, whole.get(plan.task, "")))
            outcomes[number : number + 1] = [outcome]
            loads[number : number + 1] = [os.getloadavg()[0]]
            print(number, outcome, flush=True)
            about = {"seed": options.seed, "cores": os.cpu_count(), "load": round(statistics.mean(loads), 1)}
            about["real_time"] = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
            about["again"] = list(options.again)
            head = json.dumps({**about, "date": time.strftime("%Y-%m-%d")})
            lines = ",\n".join(json.dumps(outcome) for outcome in outcomes)
            RESULTS.write_text(f'{head[:-1]}, "runs": [\n{lines}\n]}}\n', "utf-8")


def make_plans(tasks: Sequence[str], kills: int, pauses: int, seed: int) -> list[Plan]:
    """Return a plan a fault in random order: kills by kind in turn, and pauses, over the tasks in turn."""
    faults = [KILLS[number // len(tasks) % len(KILLS)] for number in range(kills)] + ["pause"] * pauses
    tasks_in_turn = [tasks[number % len(tasks)] for number in range(len(faults))]
    plans = [Plan(task, fault, EPSILON.get(task, 0.0)) for task, fault in zip(tasks_in_turn, faults, strict=True)]
    random.Random(seed).shuffle(plans)
    return plans


def make_further_plans(tasks: Sequence[str], apart: int, noised: int) -> list[Plan]:
    """Return the plans of federations apart, and those of one more task with noise."""
    plans = [
        Plan(task := tasks[number % len(tasks)], APART[number * len(APART) // apart], EPSILON.get(task, 0.0))
        for number in range(apart)
    ]
    kinds = (*KILLS, *APART)
    return plans + [Plan(NOISED, kinds[number % len(kinds)], NOISED_EPSILON) for number in range(noised)]


if __name__ == "__main__":
    main()
