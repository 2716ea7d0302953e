"""Time of the server to plan a round, by planner.

`python -m studies speed planner` plays a run of 943 clients up to round 100 of 200, every client with its own budget, and
times the next decision and the update by its reward. The limit is 5 ms a decision. `bgtplanner, first` is the one round that
also solves the linear program for Z. Prints a table and writes JSON.
"""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from common.methods.planners import PLANNERS, BGTplanner, PlannerOptions
from server.planning.planner import Decision, Planner, RunBudget
from server.planning.registry import build_planner
from server.planning.reward import singular_values
from server.planning.state import PlannerState
from studies.speed import timing
from studies.speed.timing import median_seconds

LIMIT = 0.005
TOTAL = 1.5504  # zCDP ρ of (10, 1e-5)
EVERY = ("bgtplanner", "uniform", "adpml", "adap", "fedsgd")


def play(planner: Planner, remaining: dict[str, float], rounds: int) -> PlannerState:
    """Return the state after so many rounds of noisy rewards.

    Budgets do not shrink, and no round is refused.
    """
    state, rng = planner.start(), np.random.default_rng(0)
    for t in range(rounds):
        state = planner.observe(state, decide(planner, state, remaining, t), float(rng.normal(1e-3, 1e-3)))
    return state


def decide(planner: Planner, state: PlannerState, remaining: dict[str, float], t: int) -> Decision:
    """Return the decision of round t."""
    context = np.sort(np.random.default_rng([1, t]).uniform(8, 12, 5))[::-1]
    decision = planner.decide(state, context, remaining, np.random.default_rng([0, t]))
    if not isinstance(decision, Decision):
        raise SystemExit(decision.reason)
    return decision


def measure(options: PlannerOptions, clients: int, history: int, repetitions: int) -> dict[str, float]:
    """Return seconds to decide and to observe after `history` rounds."""
    planner = build_planner(options, RunBudget(TOTAL, 2 * history, clients))
    budgets = np.random.default_rng(2).uniform(0.5, 1.0, clients) * TOTAL
    remaining = {f"user-{i:05d}": float(budget) for i, budget in enumerate(budgets)}
    state = play(planner, remaining, history)
    decision = decide(planner, state, remaining, history)
    return {
        "decide": median_seconds(lambda: decide(planner, state, remaining, history), repetitions),
        "observe": median_seconds(lambda: planner.observe(state, decision, 1e-3), repetitions),
    }


def contexts(clients: int, items: int, repetitions: int) -> dict[str, float]:
    """Return seconds for the top five singular values of an item update and of the paper's usage matrix."""
    rng = np.random.default_rng(3)
    update, usage = rng.normal(size=(items, 8)), (rng.uniform(size=(clients, items)) < 0.1).astype(np.float32)
    return {
        f"update {items} x 8": median_seconds(lambda: singular_values(update, 5), repetitions),
        f"usage {clients} x {items}": median_seconds(lambda: singular_values(usage, 5), 3),
    }


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "planner")
    parser.add_argument("--clients", type=int, default=943)
    parser.add_argument("--history", type=int, default=100)
    parser.add_argument("--items", type=int, default=1682)
    parser.add_argument("--repetitions", type=int, default=51)
    options = parser.parse_args()

    runs: list[dict[str, Any]] = []
    for each, name, history in [(BGTplanner(), "bgtplanner, first", 30)] + [
        (PLANNERS[name].options(), name, options.history) for name in EVERY
    ]:
        runs.append({"planner": name} | measure(each, options.clients, history, options.repetitions))
    described = contexts(options.clients, options.items, options.repetitions)

    table = Table("planner", "decide, ms", "observe, ms", "limit, ms", title=f"{options.clients} clients")
    for run in runs:
        table.add_row(run["planner"], f"{1e3 * run['decide']:.3f}", f"{1e3 * run['observe']:.3f}", f"{1e3 * LIMIT:.0f}")
    for name, seconds in described.items():
        table.add_row(f"context of {name}", f"{1e3 * seconds:.3f}", "", "")
    Console().print(table)
    sizes = {"clients": options.clients, "arms": BGTplanner().arms, "history": options.history}
    result = sizes | {"limit": LIMIT, "runs": runs, "contexts": described}
    timing.write(options.out, result, "numpy", "scipy")
