"""How long the teacher takes for a large batch, template by template.

`python -m benchmarks.teacher` corrects 10,000 traces of 24 hours, drawn wide enough to break most formulas, and checks
that all corrected traces satisfy it. `plan` is paid once a formula, `correct` every batch. The limits asked for: 20 ms for
twelve two-hour ranges, 200 ms for two-step eventualities in twelve windows. Prints a table and writes JSON.
"""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from common.logic import templates
from common.logic.formula import Formula
from common.logic.semantics import satisfied
from common.logic.teacher import Teacher
from common.logic.templates import windows

STEPS = 24


def cases() -> dict[str, tuple[Formula, tuple[str, ...], float | None]]:
    """Formula, variables, and the limit in seconds where one is set."""
    over = windows(STEPS, 2)
    n = len(over)
    return {
        "1 twelve two-hour ranges": (templates.operational_range("x", over, [1.0] * n, [-1.0] * n), ("x",), 0.02),
        "2 existence, 12 windows": (templates.existence("x", over, [0.5] * n, [-0.5] * n), ("x",), 0.2),
        "3 until, 12 windows": (templates.until("x", over, [1.0] * n, [0.0] * n), ("x",), None),
        "4 intra-task, 12 windows": (templates.intra_task("x", "y", over, [-1.0] * n), ("x", "y"), None),
        "5 implication": (templates.implication("x", (0, 18), (1, 5), 0.7, 1.5), ("x",), None),
        "6 nested": (templates.nested("x", "y", (0, 18), (1, 5), 0.7, 1.5), ("x", "y"), None),
        "7 eventualities, 12 windows": (templates.eventualities("x", over, [0.5] * n), ("x",), 0.2),
    }


def measure(phi: Formula, names: tuple[str, ...], traces: Tensor, repetitions: int) -> dict[str, Any]:
    """Seconds to plan and to correct, and the shares of traces that satisfy φ before and after."""
    start = time.perf_counter()
    teacher = Teacher.of(phi, names, STEPS)
    planned = time.perf_counter() - start
    corrected, seconds = teacher(traces), []
    for _ in range(repetitions):
        start = time.perf_counter()
        corrected = teacher(traces)
        seconds.append(time.perf_counter() - start)
    before, after = (float(satisfied(phi, each, names).double().mean()) for each in (traces, corrected))
    if after < 1:
        raise SystemExit(f"{phi}: only {after:.2%} of the corrected traces satisfy it")
    return {
        "plan": planned,
        "correct": statistics.median(seconds),
        "satisfied_before": before,
        "satisfied_after": after,
    }


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--traces", type=int, default=10_000)
    arguments.add_argument("--repetitions", type=int, default=11)
    arguments.add_argument("--out", type=Path, default=Path("docs/results/teacher.json"))
    options = arguments.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    table = Table(
        "formula", "plan, ms", "correct, ms", "limit, ms", "obeyed", "obeys", title=f"{options.traces:,} x {STEPS}"
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
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    result = {
        "traces": options.traces,
        "steps": STEPS,
        "threads": torch.get_num_threads(),
        "runs": runs,
        "versions": versions,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
