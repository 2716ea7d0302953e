"""Comparison of runs: a row per metric, with differences paired by client."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from common.metrics import MetricSpec
from common.options import leaves
from deploy.federation.runs import origin_of
from deploy.pages import text
from deploy.pages.metrics import format_value, in_order, is_baseline
from deploy.pages.view import ARROW, RunRecord
from server.record.events import Start
from server.record.folder import RunDirectory
from server.record.result import Result

_TOTALS: tuple[tuple[str, Callable[[Result], str]], ...] = (
    ("Rounds", lambda r: str(r.rounds_done)),
    ("Clients", lambda r: str(len(r.clients))),
    ("Time", lambda r: text.duration(r.seconds)),
    ("To the clients", lambda r: text.size(r.bytes_down)),
    ("From the clients", lambda r: text.size(r.bytes_up)),
)


def compare_runs(histories: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return every metric of the final models, then the totals of the runs."""
    measures = in_order(key for history in histories for key in history.final)
    return [_row(m, histories) for m in measures] + [_total(label, value, histories) for label, value in _TOTALS]


def _row(m: MetricSpec, histories: Sequence[RunRecord]) -> dict[str, Any]:
    best = {task: _best(m, histories, task) for task in {history.task for history in histories}}
    values = [(history.final.get(m.key), best[history.task]) for history in histories]
    cells = [{"text": format_value(m, value), "best": value is not None and value == top} for value, top in values]
    return {"label": m.label, "arrow": ARROW[m.better], "meaning": m.meaning, "cells": cells}


def _best(m: MetricSpec, histories: Sequence[RunRecord], task: str) -> float | None:
    """Return the best value among a task's runs; None for baselines and for equal values."""
    values = {history.final.get(m.key, math.nan) for history in histories if history.task == task}
    numbers = {value for value in values if not math.isnan(value)}
    if len(numbers) < 2 or not m.better or is_baseline(m.key):
        return None
    return min(numbers) if m.better == "lower" else max(numbers)


def _total(label: str, value: Callable[[Result], str], histories: Sequence[RunRecord]) -> dict[str, Any]:
    cells = [{"text": value(h.result) if h.result else "–", "best": False} for h in histories]
    return {"label": label, "arrow": "", "meaning": "", "cells": cells}


MIN_PAIRS = 5
"""Number of clients below which a difference is too uncertain to be called one."""


@dataclass(frozen=True)
class Paired:
    """Difference of a metric, second run minus first, over the clients that have it in both.

    Args:
        mean: Mean over clients.
        se: Standard error of the mean; NaN for fewer than two clients.
        clients: Number of clients.
    """

    mean: float
    se: float
    clients: int

    @property
    def is_clear(self) -> bool:
        """True if the mean is at least two standard errors from 0, over enough clients."""
        return self.clients >= MIN_PAIRS and abs(self.mean) >= 2 * self.se and self.mean != 0


def pair(m: MetricSpec, first: Result, second: Result) -> Paired | None:
    """Return the paired difference of a metric; None if no client has it in both runs."""
    pairs = [
        (first.clients[name].metrics.get(m.key, math.nan), second.clients[name].metrics.get(m.key, math.nan))
        for name in first.clients.keys() & second.clients.keys()
    ]
    differences = [after - before for before, after in pairs if math.isfinite(after - before)]
    if not differences:
        return None
    n = len(differences)
    return Paired(mean(differences), stdev(differences) / math.sqrt(n) if n > 1 else math.nan, n)


def find_mismatches(runs: Sequence[Path]) -> list[str]:
    """Return what differs between runs so that their metrics are not comparable: task, data or split."""
    traits = [_traits(path) for path in runs]
    return [name for name in traits[0] if len({one[name] for one in traits}) > 1]


def _traits(path: Path) -> dict[str, object]:
    """Return what must be equal in comparable runs: task, split, and a fingerprint of the data.

    A run of an earlier release has no fingerprint. Its vocabulary and each client's number of records stand in.
    """
    folder = RunDirectory(path.parent, path.name)
    config, result = dict(leaves(folder.config(), "")), folder.result()
    start = next((event for event in folder.events() if isinstance(event, Start)), None)
    task = config.get("task")
    shares = tuple(config.get(f"tasks.{task}.{key}") for key in ("test-share", "validation-share"))
    if start and start.fingerprint:
        return {"task": task, "data": start.fingerprint, "split": (shares, start.split)}
    origin = origin_of(path)
    examples = {name: client.examples for name, client in result.clients.items()} if result else {}
    data = folder.catalogue(), origin.data if origin else "", tuple(sorted(examples.items()))
    return {"task": task, "data": data, "split": (shares, config.get("seed"))}
