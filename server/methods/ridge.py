"""Ridge regression in closed form; the client side is `client/trainers/ridge.py`.

The mathematics is that of the task's closed form, such as EASE for rules. A round is one sum; what it gives is sent to the
clients as an untrained input of the model.
"""

import logging
import os
import time
from collections.abc import Collection
from pathlib import Path

from common.arrays import Arrays
from common.contribution import UPDATE, Contribution
from common.errors import DataError
from common.methods import ridge
from common.methods.ridge import Ridge
from common.tasks.closed_form import AnyClosedForm, drop_rare, widen
from common.tasks.registry import closed_form_of
from server.round.method import Assignment, Groups, Method, RoundContext, ServerMethod
from server.round.state import PARENT_SUMS, SUMS

log = logging.getLogger("fedloom.server")

OPERATIONS = 4e10
"""Multiplications and additions in float64 of one core in a second, as measured."""

GIBIBYTE = 2**30

MEMINFO, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Files with the free memory of the machine, and of the container."""


class NoModel(Assignment):
    """No model for any client: a network that trains after the sums stays on the server until then."""

    def model_for(self, at: RoundContext, client: str) -> Arrays:
        """Return no parameters."""
        return {}


class RidgeStep(Method):
    """One sum a round: statistics in, solution out."""

    assignment = NoModel()

    def __init__(self, options: Ridge) -> None:
        self.strength, self.min_count = options.strength, options.min_count

    def template(self, at: RoundContext, model: Arrays) -> Arrays:
        """Return zeros of the form of a client's next statistics."""
        template = closed_form_of(at.config.task).template(at.state.statics)
        return widen(template) if self.min_count else template

    def check(self, at: RoundContext) -> None:
        """Check that the sum and what follows from it fit into memory.

        Raises:
            DataError: They do not.
        """
        form, solved = closed_form_of(at.config.task), at.state.statics
        template = form.template(solved)
        tables = (template, widen(template)) if self.min_count else (template,)
        needed = 8 * sum(a.size for each in tables for a in each.values()) + form.effort(solved).bytes
        _check_memory(f"sum {at.number} of {at.rounds}", needed)

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return the model as it is, and the next state."""
        return self.step(at, state, model, total)[:2]

    def step(
        self, at: RoundContext, state: Groups, model: Arrays, total: Contribution
    ) -> tuple[Arrays, Groups, Arrays]:
        """Return the model as it is, as state the sums with which another run can continue, and the solution."""
        form, sums = closed_form_of(at.config.task), self._sums(at, total)
        named = form.name_sums(at.state.statics, sums)
        effort, started, sum_ = form.effort(at.state.statics), time.monotonic(), f"sum {at.number} of {at.rounds}"
        if effort.operations:
            seconds = effort.operations / (OPERATIONS * (os.cpu_count() or 1))
            log.info("%s: solving takes about %.0f s and %.1f GiB of memory", sum_, seconds, effort.bytes / GIBIBYTE)
        solved = form.solve(at.state.statics, sums, self.strength)
        _report_left_out(sum_, form, sums, solved.keys() - at.state.statics.keys(), solved)
        if effort.operations:
            log.info("%s: solved in %.1f s", sum_, time.monotonic() - started)
        return model, {**state, SUMS: {**state.get(SUMS, {}), **named}}, solved

    def _sums(self, at: RoundContext, total: Contribution) -> Arrays:
        """Return the sums of this round without rows of too few clients.

        Sums of the run from which this one started are added.
        """
        sums, earlier = total.sums[UPDATE], at.state.memory.get(PARENT_SUMS, {})
        sums = drop_rare(sums, self.min_count) if self.min_count else sums
        return closed_form_of(at.config.task).add_named(at.state.statics, sums, earlier) if earlier else sums


def _report_left_out(sum_: str, form: AnyClosedForm, sums: Arrays, added: Collection[str], solved: Arrays) -> None:
    """Log how many names of a first sum are not among the chosen ones, if there are too many for a solve."""
    chosen = max((len(solved[name]) for name in {row.chosen for row in form.lasting.values()} & {*added}), default=0)
    counted = max(int((table[:, -1] > 0.5).sum()) for table in sums.values()) if chosen else 0
    if counted > chosen:
        text = "%s: %d of %d entries of the first sum are left out, those with the smallest counts"
        log.warning(text, sum_, counted - chosen, counted)


def _check_memory(sum_: str, needed: float) -> None:
    if needed > (free := free_memory()):
        raise DataError(
            f"{sum_} and its solve need {needed / GIBIBYTE:.1f} GiB of memory, and {free / GIBIBYTE:.1f} GiB are free;"
            " give the server more memory, or use a smaller vocabulary"
        )


def free_memory() -> float:
    """Return the free bytes of the machine or the container; infinity if they are not known."""
    try:
        line = next(line for line in MEMINFO.read_text("ascii").splitlines() if line.startswith("MemAvailable:"))
        free = 1024 * float(line.split()[1])
    except (OSError, StopIteration, ValueError):
        return float("inf")
    try:
        limit, stat = ((GROUP / name).read_text("ascii") for name in ("memory.max", "memory.stat"))
        used = float(dict(line.split() for line in stat.splitlines())["anon"])
        return min(free, float(limit.replace("max", "inf")) - used)
    except (OSError, ValueError, KeyError):
        return free


METHOD = ServerMethod(ridge.METHOD, RidgeStep)
