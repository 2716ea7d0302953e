"""What each metric is called, which way is better, what it means: what drives lines, tables and figures."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from common.metrics.known import COMMON_METRICS
from common.metrics.known import EXAMPLES as EXAMPLES
from common.metrics.spec import MetricSpec

_KNOWN = {measure.key: measure for measure in COMMON_METRICS}
_HEADLINE_CUT = "20"  # of several cut-offs of one family, the one that stands for it
_ORIGINS = {
    "cluster_": "cluster model",
    "global_": "shared model",
    "teacher_": "teacher",
    "truth_": "the truth itself",
    "walk_": "random walk",
    "degree_": "popularity",
    "shared_": "popularity and other markets",
    "seen_": "items that others know",
}
_UNTRAINED = ("truth_", "walk_", "degree_", "shared_")
_LINES = (
    *("profile_mse", "ridge_mse", "last_week_mse", "property_width"),
    *("rmse_local_mean", "rmse_prior_mean", "rmse_half", "f1_all_liked"),
)
_CORRECTED = "teacher_mse"  # of the metrics of other origin, the one that stands in a line
_FORECASTS = (
    *("mse", "cluster_mse", "global_mse", _CORRECTED, "profile_mse", "ridge_mse", "last_week_mse"),
    *("rho_point", "rho_trace", "truth_rho_trace", "property_width"),
)
"""Of a forecaster's many metrics, those that stand in short tables."""


def measure(key: str) -> MetricSpec:
    """What is known of a metric; an unknown one is called by its key."""
    for prefix, origin in _ORIGINS.items():
        if key.startswith(prefix):
            return _of(origin, prefix, key)
    if key in _KNOWN:
        return _KNOWN[key]
    family, cut = re.fullmatch(r"(.*?)(\d*)", key).groups()  # type: ignore[union-attr]  # matches any text
    found = _KNOWN.get(f"{family}*") if cut else None
    if found is None:
        return MetricSpec(key, key, key.replace("_", " ").capitalize(), "", 3, "")
    short, label, meaning = (text.replace("*", cut) for text in (found.short, found.label, found.meaning))
    return replace(found, key=key, short=short, label=label, meaning=meaning, headline=cut == _HEADLINE_CUT)


def in_order(keys: Iterable[str]) -> list[MetricSpec]:
    """The metrics in the table's order, cut-offs ascending, unknown ones last by name."""
    return sorted(map(measure, set(keys)), key=_place)


def brief(keys: Iterable[str]) -> list[MetricSpec]:
    """Those that stand in short tables, in order: all, unless they are a forecaster's."""
    found = in_order(keys)
    forecasts = any(m.key.endswith("rho_trace") for m in found)
    return [m for m in found if m.key in _FORECASTS] if forecasts else found


def headlines(keys: Iterable[str]) -> list[MetricSpec]:
    """Those of the metrics that stand for the rest."""
    return [m for m in in_order(keys) if m.headline]


def is_line(key: str) -> bool:
    """Whether the metric is of something to compare with, which no run has trained."""
    return key in _LINES or key.startswith(_UNTRAINED)


def is_error(task: str, model: str) -> bool:
    """Whether the loss that clients train by is an error; that of default ratings only makes a step upload a report."""
    return (task, model) != ("ratings", "default")


def curve(metrics: dict[str, float], family: str = "hr") -> dict[int, float]:
    """Cut-off -> value, over all `family<N>` of the metrics."""
    found = {
        int(key.removeprefix(family)): value for key, value in metrics.items() if re.fullmatch(rf"{family}\d+", key)
    }
    return dict(sorted(found.items()))


def format_value(m: MetricSpec, value: float | None) -> str:
    """The value as people read it; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{m.digits}f}" if abs(value) < 10_000 else f"{value:.3g}"


def _of(origin: str, prefix: str, key: str) -> MetricSpec:
    base = measure(key.removeprefix(prefix))
    short, label = f"{prefix[:-1]} {base.short}", f"{base.label}, {origin}"
    better: Literal["lower", "higher", ""] = "" if prefix == "truth_" else base.better
    return replace(base, key=key, short=short, label=label, better=better, headline=key == _CORRECTED)


def _place(m: MetricSpec) -> tuple[int, int, tuple[int, ...], str]:
    base, origins = m.key, []
    while prefix := next((p for p in _ORIGINS if base.startswith(p)), ""):
        base = base.removeprefix(prefix)
        origins.append(list(_ORIGINS).index(prefix))
    family, cut = re.fullmatch(r"(.*?)(\d*)", base).groups()  # type: ignore[union-attr]
    known = [base if base in _KNOWN else f"{family}*"]
    row = next((i for i, entry in enumerate(COMMON_METRICS) if entry.key in known), len(COMMON_METRICS))
    return (row, int(cut or 0), tuple(origins), m.key)
