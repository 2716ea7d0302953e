"""Ridge regression in closed form; the client side is `client/trainers/ridge.py`.

The mathematics is that of the task's closed form, such as EASE for rules. A round is one sum; what it gives is sent to the
clients as an untrained input of the model.
"""

import logging
import os
import time
from pathlib import Path

from common.arrays import Arrays
from common.contribution import UPDATE, Contribution
from common.errors import DataError
from common.methods import ridge
from common.methods.ridge import Ridge
from common.tasks.closed_form import drop_rare, widen
from common.tasks.registry import closed_form_of
from server.round.method import Groups, Method, RoundContext, ServerMethod
from server.round.state import PARENT_SUMS, SUMS

log = logging.getLogger("fedloom.server")

OPERATIONS = 4e10
"""Multiplications and additions in float64 of one core in a second, as measured."""

GIBIBYTE = 2**30

MEMINFO, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Files with the free memory of the machine, and of the container."""


class RidgeStep(Method):
    """One sum a round: statistics in, solution out."""

    def __init__(self, options: Ridge) -> None:
        self.strength, self.min_count = options.strength, options.min_count
        self._fitting: Arrays | None = None
        """Solution before the sum of which it is known that it fits into memory."""

    def template(self, at: RoundContext, model: Arrays) -> Arrays:
        """Return zeros of the form of a client's next statistics.

        Raises:
            DataError: The sum and what follows from it do not fit into memory.
        """
        form, solved = closed_form_of(at.config.task), at.state.statics
        template = form.template(solved)
        sent = widen(template) if self.min_count else template
        if self._fitting is not solved:  # asked again, part of the memory may be in use
            tables = (template, sent) if self.min_count else (sent,)
            needed = 8 * sum(a.size for each in tables for a in each.values()) + form.effort(solved).bytes
            _check_memory(f"sum {at.number} of {at.rounds}", needed)
            self._fitting = solved
        return sent

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return the model as it is, and as state the sums with which another run can continue."""
        named = closed_form_of(at.config.task).name_sums(at.state.statics, self._sums(at, total))
        return model, {**state, SUMS: {**state.get(SUMS, {}), **named}}

    def statics(self, at: RoundContext, total: Contribution) -> Arrays:
        """Return what follows from this sum and the earlier ones, without rows of too few clients."""
        form, sums = closed_form_of(at.config.task), self._sums(at, total)
        effort, started, sum_ = form.effort(at.state.statics), time.monotonic(), f"sum {at.number} of {at.rounds}"
        if effort.operations:
            seconds = effort.operations / (OPERATIONS * (os.cpu_count() or 1))
            log.info("%s: solving takes about %.0f s and %.1f GiB of memory", sum_, seconds, effort.bytes / GIBIBYTE)
        solved = form.solve(at.state.statics, sums, self.strength)
        if effort.operations:
            log.info("%s: solved in %.1f s", sum_, time.monotonic() - started)
        return solved

    def _sums(self, at: RoundContext, total: Contribution) -> Arrays:
        """Return the sums of this round without rows of too few clients, with those of the run from which it started."""
        sums, earlier = total.sums[UPDATE], at.state.memory.get(PARENT_SUMS, {})
        sums = drop_rare(sums, self.min_count) if self.min_count else sums
        return closed_form_of(at.config.task).add_named(at.state.statics, sums, earlier) if earlier else sums


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
