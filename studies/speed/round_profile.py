"""Processor time of one round of each task by part, at clients and at the server.

`python -m studies speed round_profile [--only TASK ...]` trains the networks of `closed_forms` for a few rounds, each with an
evaluation by all clients. A part's time is that of its functions without the parts that they call. Messages stay in this
process, where replies are measured and not encoded. Prints a table and writes JSON.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from server.round.state import RunState
from server.run import run
from studies.harness.experiment import Settings
from studies.speed import timing
from studies.speed.closed_forms import CASES, configure, open_bench, open_grid, read_options

ROUNDS = 8
"""Rounds of a run; the first, which warms up, and the last, which ends it, do not count."""

T = TypeVar("T")
OTHER = "server: other"

PARTS = {
    "clients: training": ["deploy.simulation.grid.InProcessGrid._train"],
    "clients: evaluation": ["deploy.simulation.grid.InProcessGrid._answer"],
    "clients: messages": [f"deploy.simulation.clients.{name}" for name in ("answer_each", "message_sizes", "hand")],
    "server: messages": ["server.round.round.Round._messages", "server.exchange.grid.PollingGrid.exchange"],
    "server: checks": ["server.round.intake.SingleIntake.close"],
    "server: sum": ["server.round.intake.SingleIntake.add_up"],
    "server: step": ["server.round.round.Round._advance"],
    "server: checkpoint": ["server.record.journal.Journal.record_training"],
    "server: evaluation": ["server.round.evaluation.Evaluator.summarize"],
}
"""Part -> its functions. Evaluation includes the choice of clusters; the rest of a round is `OTHER`."""


class Stopwatch:
    """Processor seconds by part; it times the functions of `PARTS` until the process ends."""

    def __init__(self) -> None:
        self.seconds, self._open, self._last = defaultdict[str, float](float), [OTHER], 0.0
        for part, names in PARTS.items():
            for owner, _, name in (one.rpartition(".") for one in names):
                setattr(resolve_name(owner), name, self._timed(part, getattr(resolve_name(owner), name)))

    def charge(self) -> None:
        """Add the time since the last call to the innermost part that is open."""
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._last
        self._last = now

    def on_round(self, state: RunState) -> None:
        """Begin anew after the warm-up, and end before the last round."""
        if state.round == 1:
            self.seconds, self._last = defaultdict(float), time.process_time()
        elif state.round == ROUNDS - 1:
            self.charge()
            self.seconds, self.measured = defaultdict(float), dict(self.seconds)

    def _timed(self, part: str, work: Callable[..., T]) -> Callable[..., T]:
        @wraps(work)
        def timed(*values: Any, **options: Any) -> T:
            self.charge()
            self._open.append(part)
            try:
                return work(*values, **options)
            finally:
                self.charge()
                self._open.pop()

        return timed


def profile(watch: Stopwatch, task: str, data: Path) -> dict[str, float]:
    """Return milliseconds of processor time of one round by part."""
    with TemporaryDirectory() as folder:
        bench = open_bench(task, data, Path(folder))
        changes: Settings = {"run-id": task, "rounds": ROUNDS, "evaluate-every": 1}
        config = configure(bench, task, CASES[task].network, changes)
        with open_grid(config, bench.dataset, CASES[task].together) as grid:
            run(grid, config, Path(folder), on_round=watch.on_round)
    counted = ROUNDS - 2
    return {part: round(1000 * watch.measured.get(part, 0.0) / counted, 2) for part in (*PARTS, OTHER)}


def main() -> None:
    """Measure and write."""
    options = read_options(__doc__, "round_profile")
    watch, table = Stopwatch(), Table("ms a round", *PARTS, OTHER)
    for task in options.only:
        found = profile(watch, task, options.data)
        timing.write(options.out, found, "torch", "numpy", under=task)
        table.add_row(task, *map(str, found.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
