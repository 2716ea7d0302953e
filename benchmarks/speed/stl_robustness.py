"""Robustness of a batch of traces: fedloom's engine against rtamt, formula by formula, trace by trace.

`python -m benchmarks.stl_robustness` draws traces of 24 steps and two variables, evaluates the same formulas with both, demands
that all values agree to 1e-9 (float64), and times them in turns. rtamt parses each formula once, outside the clock, and gets
ready lists; it evaluates one trace at a time, which is all it does. Prints a table and writes JSON.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
import typing
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from common.logic import templates
from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Not, Or, Until, Variable
from common.logic.semantics import robustness
from common.logic.templates import windows

sys.modules["typing.io"] = typing  # rtamt's antlr4 imports TextIO from there, a name that Python 3.12 has no more
import rtamt  # noqa: E402

NAMES = ("x", "y")
STEPS = 24
TOLERANCE = 1e-9


def rtamt_text(phi: Formula) -> str:
    """φ in rtamt's language. Its until leaves out t', so ψ asks for φ there as well: the closed window of §3.1."""
    match phi:
        case Atom():
            return f"({phi})"
        case Not(part):
            return f"(not {rtamt_text(part)})"
        case And(parts):
            return f"({' and '.join(map(rtamt_text, parts))})"
        case Or(parts):
            return f"({' or '.join(map(rtamt_text, parts))})"
        case Implies(left, right):
            return f"({rtamt_text(left)} -> {rtamt_text(right)})"
        case Always(a, b, part):
            return f"(always[{a},{b}] {rtamt_text(part)})"
        case Eventually(a, b, part):
            return f"(eventually[{a},{b}] {rtamt_text(part)})"
        case Until(a, b, left, right):
            held = rtamt_text(left)
            return f"({held} until[{a},{b}] ({held} and {rtamt_text(right)}))"


@dataclass(frozen=True)
class Oracle:
    """rtamt's discrete-time monitor of one formula."""

    monitor: Any

    @classmethod
    def of(cls, phi: Formula, names: typing.Sequence[str] = NAMES) -> "Oracle":
        """Parse the formula once."""
        monitor = rtamt.StlDiscreteTimeSpecification()
        for name in names:
            monitor.declare_var(name, "float")
        monitor.spec = rtamt_text(phi)
        monitor.parse()
        return cls(monitor)

    def signal(self, trace: dict[str, list[float]]) -> list[float]:
        """Robustness at every step of one trace (`time` and the variables as lists)."""
        return [value for _, value in self.monitor.evaluate(trace)]


def trace_lists(traces: Tensor, names: typing.Sequence[str] = NAMES) -> list[dict[str, list[float]]]:
    """Traces B x T x D as rtamt reads them."""
    time_axis = list(range(traces.shape[1]))
    return [
        {"time": time_axis} | {name: trace[:, d].tolist() for d, name in enumerate(names)} for trace in traces.unbind(0)
    ]


def formulas() -> dict[str, Formula]:
    """One of each template, with 12 windows of two steps or a span of 18 steps."""
    over = windows(STEPS, 2)
    n = len(over)
    x, y = Variable("x"), Variable("y")
    return {
        "1 operational range": templates.operational_range("x", over, [1.0] * n, [-1.0] * n),
        "2 existence": templates.existence("x", over, [0.5] * n, [-0.5] * n),
        "3 until": templates.until("x", over, [1.0] * n, [0.0] * n),
        "4 intra-task": templates.intra_task("x", "y", over, [-1.0] * n),
        "5 implication": templates.implication("x", (0, 18), (1, 5), 0.7, 0.5),
        "6 nested": templates.nested("x", "y", (0, 18), (1, 5), 0.7, 0.5),
        "7 eventualities": templates.eventualities("x", over, [0.5] * n),
        "nested until": Always(0, 5, Until(2, 17, x - y < 2.5, Or((y > 1, Not(x > -0.5))))),
    }


def timed(way: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the seconds it took."""
    start = time.perf_counter()
    result = way()
    return result, time.perf_counter() - start


def measure(phi: Formula, traces: Tensor, repetitions: int) -> dict[str, Any]:
    """Seconds a batch of both, in turns, and the largest difference of values."""
    oracle, lists = Oracle.of(phi), trace_lists(traces)
    robustness(phi, traces, NAMES)
    turns = []
    for _ in range(repetitions):
        theirs, slow = timed(lambda: [oracle.signal(trace)[0] for trace in lists])
        ours, fast = timed(lambda: robustness(phi, traces, NAMES))
        turns.append((slow, fast))
    difference = float((ours - torch.tensor(theirs, dtype=torch.float64)).abs().max())
    if difference > TOLERANCE:
        raise SystemExit(f"{phi}: the values differ by {difference}")
    slow, fast = (statistics.median(each) for each in zip(*turns, strict=True))
    return {
        "rtamt": slow,
        "fedloom": fast,
        "times": statistics.median(a / b for a, b in turns),
        "difference": difference,
    }


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--batch", type=int, default=1000)
    arguments.add_argument("--repetitions", type=int, default=3)
    arguments.add_argument("--out", type=Path, default=Path("docs/results/stl_robustness.json"))
    options = arguments.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    traces = torch.randn(options.batch, STEPS, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    table = Table(
        "formula", "rtamt, s", "fedloom, s", "times", "difference", title=f"{options.batch:,} traces of {STEPS} steps"
    )
    runs = []
    for name, phi in formulas().items():
        run = measure(phi, traces, options.repetitions)
        table.add_row(
            name, f"{run['rtamt']:.3f}", f"{run['fedloom']:.5f}", f"{run['times']:,.0f}", f"{run['difference']:.1e}"
        )
        runs.append({"formula": name, "text": str(phi)} | run)
    Console().print(table)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "rtamt": version("rtamt")}
    result = {
        "batch": options.batch,
        "steps": STEPS,
        "threads": torch.get_num_threads(),
        "runs": runs,
        "versions": versions,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
