"""Time of the robustness of a batch of traces: fedloom against rtamt.

`python -m studies speed stl_robustness` draws traces of 24 steps and two variables, evaluates the same formulas with
both, requires that all values agree to 1e-9 (float64), and times them in turns. rtamt parses each formula once, which is not
timed, and receives lists; it evaluates one trace at a time. Prints a table and writes JSON.
"""

import statistics
import sys
import typing
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from common.logic import inference
from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Not, Or, Until, Variable
from common.logic.inference import windows
from common.logic.semantics import robustness
from studies.speed import timing

sys.modules["typing.io"] = typing  # rtamt's antlr4 imports TextIO from there, which Python 3.12 lacks
import rtamt  # noqa: E402

NAMES = ("x", "y")
STEPS = 24
TOLERANCE = 1e-9


def rtamt_text(phi: Formula) -> str:
    """Return φ in rtamt's language.

    Its until leaves out t', so φ is added to ψ for the closed window of §3.1.
    """
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
    """Discrete-time monitor of rtamt for one formula."""

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
        """Return the robustness at every step of one trace (`time` and the variables as lists)."""
        return [value for _, value in self.monitor.evaluate(trace)]


def trace_lists(traces: Tensor, names: typing.Sequence[str] = NAMES) -> list[dict[str, list[float]]]:
    """Return traces B x T x D as rtamt reads them."""
    time_axis = list(range(traces.shape[1]))
    return [
        {"time": time_axis} | {name: trace[:, d].tolist() for d, name in enumerate(names)} for trace in traces.unbind(0)
    ]


def formulas() -> dict[str, Formula]:
    """Return a formula of each template, with 12 windows of two steps or a span of 18 steps."""
    over = windows(STEPS, 2)
    n = len(over)
    x, y = Variable("x"), Variable("y")
    return {
        "1 operational range": inference.operational_range("x", over, [1.0] * n, [-1.0] * n),
        "2 existence": inference.existence("x", over, [0.5] * n, [-0.5] * n),
        "3 until": inference.until("x", over, [1.0] * n, [0.0] * n),
        "4 intra-task": inference.intra_task("x", "y", over, [-1.0] * n),
        "5 implication": inference.nested("x", "x", (0, 18), (1, 5), 0.7, 0.5),
        "6 nested": inference.nested("x", "y", (0, 18), (1, 5), 0.7, 0.5),
        "7 eventualities": inference.eventualities("x", over, [0.5] * n),
        "nested until": Always(0, 5, Until(2, 17, x - y < 2.5, Or((y > 1, Not(x > -0.5))))),
    }


def measure(phi: Formula, traces: Tensor, repetitions: int) -> dict[str, Any]:
    """Return seconds a batch of both, in turns, and the largest difference of values."""
    oracle, lists = Oracle.of(phi), trace_lists(traces)
    values = torch.tensor([oracle.signal(trace)[0] for trace in lists], dtype=torch.float64)
    difference = float((robustness(phi, traces, NAMES) - values).abs().max())
    if difference > TOLERANCE:
        raise SystemExit(f"{phi}: the values differ by {difference}")
    ways = {
        "rtamt": lambda: [oracle.signal(trace)[0] for trace in lists],
        "fedloom": lambda: robustness(phi, traces, NAMES),
    }
    times = timing.time_in_turns(ways, repetitions, warm_up=False)
    ratio = timing.median_ratio(times["rtamt"], times["fedloom"])
    return {**{name: statistics.median(each) for name, each in times.items()}, "times": ratio, "difference": difference}


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "stl_robustness")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    threads = timing.use_few_threads()

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
    result = {"batch": options.batch, "steps": STEPS, "threads": threads, "runs": runs}
    timing.write(options.out, result, "torch", "rtamt")
