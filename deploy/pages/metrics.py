"""Metrics of all installed tasks: names, order, headlines, and texts of their values."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from common.errors import ConfigError
from common.metrics import USED, MetricFamily, MetricSpec
from common.tasks.registry import TASKS
from common.tasks.spec import AnyTask
from server.record.result import Result

_HEADLINE_CUT = "20"  # the cut-off that represents a metric with several


def measure(key: str) -> MetricSpec:
    """Return the description of a metric; an unknown metric is named by its key."""
    return _describe(key, _metrics(), _families())


def in_order(keys: Iterable[str]) -> list[MetricSpec]:
    """Return the metrics in the order of tables: cut-offs ascending, unknown metrics last by name."""
    return sorted(map(measure, set(keys)), key=_place)


def brief(keys: Iterable[str], task: str) -> list[MetricSpec]:
    """Return the metrics that stand in short tables of a run of that task, in order."""
    if task not in TASKS:
        return in_order(keys)
    spec = TASKS[task]
    metrics, families = {m.key: m for m in spec.metrics}, {f.prefix: f for f in (*spec.families, USED)}
    return [m for m in in_order(keys) if _describe(m.key, metrics, families).short_table]


def headlines(keys: Iterable[str]) -> list[MetricSpec]:
    """Return the metrics that stand in progress lines and get a curve, in order."""
    return [m for m in in_order(keys) if m.headline]


def is_baseline(key: str) -> bool:
    """Return True if the metric is that of an untrained reference."""
    return measure(key).baseline


def is_error(task: str, model: str) -> bool:
    """Return True if the training loss of a run of that task is an error measure."""
    return task not in TASKS or TASKS[task].loss_is_error("paper" if model == "paper" else "default")


def curve(metrics: dict[str, float]) -> dict[int, float]:
    """Return cut-off -> value over all hit rates `hrN` of the metrics."""
    values = {int(key.removeprefix("hr")): value for key, value in metrics.items() if re.fullmatch(r"hr\d+", key)}
    return dict(sorted(values.items()))


def format_value(m: MetricSpec, value: float | None) -> str:
    """Return the value as text; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{m.digits}f}" if abs(value) < 10_000 else f"{value:.3g}"


def folded(measures: Iterable[MetricSpec], most: int = 5) -> list[MetricSpec]:
    """Return the metrics of cards, headlines first, and one of near duplicates such as other cut-offs."""
    kinds: dict[str, MetricSpec] = {}
    for m in sorted(measures, key=lambda m: not m.headline):
        kinds.setdefault(re.split(r",| @| of ", m.label)[0], m)
    return list(kinds.values())[:most]


def local_metrics(result: Result) -> str:
    """Return metrics that this machine's own clients measured and did not send; empty if there are none."""
    values = [f"{m.short} {format_value(m, result.local[m.key])}" for m in brief(result.local, result.task)]
    return f"{', '.join(values)}; measured on this machine by its own clients, not sent" if values else ""


@cache
def _tasks() -> tuple[AnyTask, ...]:
    """Return all installed tasks; a package that cannot be imported is left out."""
    tasks = []
    for name in TASKS:
        try:
            tasks.append(TASKS[name])
        except ConfigError:
            continue
    return tuple(tasks)


@cache
def _metrics() -> dict[str, MetricSpec]:
    metrics: dict[str, MetricSpec] = {}
    for task in _tasks():
        metrics |= {m.key: m for m in task.metrics if m.key not in metrics}
    return metrics


@cache
def _families() -> dict[str, MetricFamily]:
    families = {USED.prefix: USED}
    for task in _tasks():
        families |= {family.prefix: family for family in task.families if family.prefix not in families}
    return families


def _describe(key: str, metrics: dict[str, MetricSpec], families: dict[str, MetricFamily]) -> MetricSpec:
    if family := next((family for prefix, family in families.items() if key.startswith(prefix)), None):
        return _derived(key, family, _describe(key.removeprefix(family.prefix), metrics, families))
    if key in metrics:
        return metrics[key]
    stem, cut = _split(key)
    template = metrics.get(f"{stem}*") if cut else None
    if template is None:
        return MetricSpec(key, key, key.replace("_", " ").capitalize(), "", 3, "")
    short, label, meaning = (text.replace("*", cut) for text in (template.short, template.label, template.meaning))
    return replace(template, key=key, short=short, label=label, meaning=meaning, headline=cut == _HEADLINE_CUT)


def _derived(key: str, family: MetricFamily, base: MetricSpec) -> MetricSpec:
    return replace(
        base,
        key=key,
        short=f"{family.prefix[:-1]} {base.short}",
        label=f"{base.label}, {family.origin}",
        better=base.better if family.better else "",
        headline=key in family.headlines,
        baseline=family.baseline or base.baseline,
        short_table=base.short_table if family.short_table is None else key in family.short_table,
    )


def _split(key: str) -> tuple[str, str]:
    """Return a key without its cut-off, and the cut-off."""
    stem = key.rstrip("0123456789")
    return stem, key[len(stem) :]


def _place(m: MetricSpec) -> tuple[int, int, tuple[int, ...], str]:
    base, origins, prefixes = m.key, [], list(_families())
    while prefix := next((p for p in prefixes if base.startswith(p)), ""):
        base = base.removeprefix(prefix)
        origins.append(prefixes.index(prefix))
    stem, cut = _split(base)
    keys = list(_metrics())
    row = next((keys.index(key) for key in (base, f"{stem}*") if key in keys), len(keys))
    return (row, int(cut or 0), tuple(origins), m.key)
