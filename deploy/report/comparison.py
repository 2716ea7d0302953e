"""Comparison of several runs: one row per metric, the best value marked."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from common.metrics.spec import MetricSpec
from deploy.report import text
from deploy.report.metric_table import format_value, in_order, is_baseline
from deploy.report.run import RunRecord
from deploy.report.sections import ARROW
from server.result import Result

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
