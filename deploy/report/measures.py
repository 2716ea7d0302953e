"""What each metric is called, which way is better, what it means: the table that drives lines, tables and figures."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Measure:
    """One metric.

    Args:
        key: As in metrics.jsonl and result.json.
        short: For a line in a log.
        label: For a heading.
        better: Which way is better; empty where nobody can say.
        digits: Digits after the point.
        meaning: One plain sentence.
        headline: Whether it belongs in a line or gets a curve, or only stands in tables.
    """

    key: str
    short: str
    label: str
    better: Literal["lower", "higher", ""]
    digits: int
    meaning: str
    headline: bool = True


_TABLE = (
    Measure(
        "loss", "loss", "Loss", "lower", 3, "How surprised the model is by held-out truth; 0 is certain and right."
    ),
    Measure("auc", "auc", "AUC", "higher", 3, "Chance that a true example scores above a false one; 0.5 is guessing."),
    Measure(
        "mr0",
        "mr",
        "Mean rank",
        "lower",
        2,
        "Wrong relations that score above the right one, on average; 0 is perfect.",
    ),
    Measure("mr1", "mr(1)", "Mean rank, from 1", "lower", 2, "Position of the right relation; 1 is perfect.", False),
    Measure(
        "mr_rt",
        "mr(rt)",
        "Mean rank, new only",
        "lower",
        2,
        "Mean rank with relations the pair already has left out.",
        False,
    ),
    Measure("hr*", "hr@*", "Hit rate @*", "higher", 3, "Share of held-out truth among the first * suggestions."),
    Measure("mrr*", "mrr@*", "MRR @*", "higher", 3, "Mean of 1/position of the first right answer, 0 beyond *."),
    Measure(
        "ndcg*",
        "ndcg@*",
        "NDCG @*",
        "higher",
        3,
        "Right answers among the first *, worth less further down; 1 is perfect.",
    ),
    Measure("recall*", "recall@*", "Recall @*", "higher", 3, "Share of all right answers that the first * hold."),
    Measure("mse", "mse", "Mean squared error", "lower", 4, "Squared distance of forecast and truth, on average."),
    Measure(
        "rho_point",
        "ρ.point",
        "Rule satisfaction, points",
        "higher",
        3,
        "Share of forecast hours inside the expected range.",
        False,
    ),
    Measure(
        "rho_window",
        "ρ.window",
        "Rule satisfaction, windows",
        "higher",
        3,
        "Share of forecast windows wholly in range.",
        False,
    ),
    Measure(
        "rho_trace",
        "ρ.trace",
        "Rule satisfaction, traces",
        "higher",
        3,
        "Share of whole forecasts that keep the property.",
    ),
    Measure("rmse", "rmse", "RMSE", "lower", 3, "Typical error of a predicted rating, in rating points."),
    Measure(
        "rmse_local_mean", "rmse(own mean)", "RMSE of own mean", "lower", 3, "The line to beat: each user's own mean."
    ),
    Measure("mae", "mae", "MAE", "lower", 3, "Mean absolute error of a predicted rating, in rating points.", False),
    Measure("f1", "f1", "F1", "higher", 3, "Harmonic mean of precision and recall of 'will like it'."),
)
EXAMPLES = Measure("examples", "examples", "Examples", "", 0, "How much each client brings.")
"""No metric, but spread over the clients like one."""

_KNOWN = {measure.key: measure for measure in _TABLE}
_HEADLINE_CUT = "20"  # of several cut-offs of one family, the one that stands for it
_ORIGINS = {"cluster_": "cluster model", "teacher_": "teacher"}


def measure(key: str) -> Measure:
    """What is known of a metric; an unknown one is called by its key."""
    for prefix, origin in _ORIGINS.items():
        if key.startswith(prefix):
            base = measure(key.removeprefix(prefix))
            return replace(base, key=key, short=f"{prefix[:-1]} {base.short}", label=f"{base.label}, {origin}")
    if key in _KNOWN:
        return _KNOWN[key]
    family, cut = re.fullmatch(r"(.*?)(\d*)", key).groups()  # type: ignore[union-attr]  # matches any text
    found = _KNOWN.get(f"{family}*") if cut else None
    if found is None:
        return Measure(key, key, key.replace("_", " ").capitalize(), "", 3, "")
    short, label, meaning = (text.replace("*", cut) for text in (found.short, found.label, found.meaning))
    return replace(found, key=key, short=short, label=label, meaning=meaning, headline=cut == _HEADLINE_CUT)


def in_order(keys: Iterable[str]) -> list[Measure]:
    """The metrics in the table's order, cut-offs ascending, unknown ones last by name."""
    return sorted(map(measure, set(keys)), key=_place)


def headlines(keys: Iterable[str]) -> list[Measure]:
    """Those of the metrics that stand for the rest."""
    return [m for m in in_order(keys) if m.headline]


def curve(metrics: dict[str, float], family: str = "hr") -> dict[int, float]:
    """Cut-off -> value, over all `family<N>` of the metrics."""
    found = {
        int(key.removeprefix(family)): value for key, value in metrics.items() if re.fullmatch(rf"{family}\d+", key)
    }
    return dict(sorted(found.items()))


def text(m: Measure, value: float | None) -> str:
    """The value as people read it; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{m.digits}f}" if abs(value) < 10_000 else f"{value:.3g}"


def _place(m: Measure) -> tuple[int, int, str]:
    base = next((m.key.removeprefix(p) for p in _ORIGINS if m.key.startswith(p)), m.key)
    family, cut = re.fullmatch(r"(.*?)(\d*)", base).groups()  # type: ignore[union-attr]
    known = [base if base in _KNOWN else f"{family}*"]
    row = next((i for i, entry in enumerate(_TABLE) if entry.key in known), len(_TABLE))
    return (row, int(cut or 0), m.key)
