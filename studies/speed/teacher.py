"""Time of the teacher for a large batch, by template.

`python -m studies speed teacher` corrects 10,000 traces of 24 hours, wide enough to violate most formulas, and checks
that all corrected traces satisfy their formula. `plan` is done once a formula, `correct` once a batch. The limits are 20 ms
for twelve two-hour ranges and 200 ms for two-step eventualities in twelve windows. Prints a table and writes JSON.
"""

from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from common.logic import inference
from common.logic.formula import Formula
from common.logic.inference import windows
from common.logic.projection import Teacher
from common.logic.semantics import satisfied
from studies.speed import timing

STEPS = 24


def cases() -> dict[str, tuple[Formula, tuple[str, ...], float | None]]:
    """Return formula, variables, and the limit in seconds where one is set."""
    over = windows(STEPS, 2)
    n = len(over)
    return {
        "1 twelve two-hour ranges": (inference.operational_range("x", over, [1.0] * n, [-1.0] * n), ("x",), 0.02),
        "2 existence, 12 windows": (inference.existence("x", over, [0.5] * n, [-0.5] * n), ("x",), 0.2),
        "3 until, 12 windows": (inference.until("x", over, [1.0] * n, [0.0] * n), ("x",), None),
        "4 intra-task, 12 windows": (inference.intra_task("x", "y", over, [-1.0] * n), ("x", "y"), None),
        "5 implication": (inference.nested("x", "x", (0, 18), (1, 5), 0.7, 1.5), ("x",), None),
        "6 nested": (inference.nested("x", "y", (0, 18), (1, 5), 0.7, 1.5), ("x", "y"), None),
        "7 eventualities, 12 windows": (inference.eventualities("x", over, [0.5] * n), ("x",), 0.2),
    }


def measure(phi: Formula, names: tuple[str, ...], traces: Tensor, repetitions: int) -> dict[str, Any]:
    """Return seconds to plan and to correct, and the shares of traces that satisfy φ before and after."""
    teacher, planned = timing.time_work(lambda: Teacher.of(phi, names, STEPS))
    corrected = teacher(traces)
    seconds = timing.median_seconds(lambda: teacher(traces), repetitions)
    before, after = (float(satisfied(phi, each, names).double().mean()) for each in (traces, corrected))
    if after < 1:
        raise SystemExit(f"{phi}: only {after:.2%} of the corrected traces satisfy it")
    return {"plan": planned, "correct": seconds, "satisfied_before": before, "satisfied_after": after}


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "teacher")
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=11)
    options = parser.parse_args()
    threads = timing.use_few_threads()

    table = Table(
        "formula",
        "plan, ms",
        "correct, ms",
        "limit, ms",
        "satisfied before",
        "after",
        title=f"{options.traces:,} x {STEPS}",
    )
    runs = []
    for name, (phi, names, limit) in cases().items():
        generator = torch.Generator().manual_seed(0)
        run = measure(
            phi, names, 2 * torch.randn(options.traces, STEPS, len(names), generator=generator), options.repetitions
        )
        times = (f"{1e3 * run['plan']:.1f}", f"{1e3 * run['correct']:.1f}", f"{1e3 * limit:.0f}" if limit else "")
        table.add_row(name, *times, f"{run['satisfied_before']:.1%}", f"{run['satisfied_after']:.1%}")
        runs.append({"formula": name, "limit": limit} | run)
    Console().print(table)
    result = {"traces": options.traces, "steps": STEPS, "threads": threads, "runs": runs}
    timing.write(options.out, result, "torch")
