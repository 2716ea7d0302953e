"""Figures of forecasts by round, and by client before and after the teacher."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from deploy.report.run import RunRecord
from deploy.report.svg import COLORS, INK, dot_size, svg, with_colors
from server.result import ClientResult

ROLES = {"": "student", "cluster_": "cluster model", "global_": "shared model", "teacher_": "teacher"}
"""Prefix of a metric -> the forecaster."""

_DASHED, _DOTTED = (0, (4, 3)), (0, (1, 1.5))


def by_round(histories: Sequence[RunRecord], key: str, baseline: str, label: str) -> str:
    """Draw a metric of each forecaster per round, and the dashed `baseline`.

    Figures of several runs show the student and the dotted teacher only.
    """

    def draw(axes: Axes) -> None:
        if len(histories) == 1:
            for (prefix, role), color in zip(ROLES.items(), COLORS, strict=False):
                width = 1.1 if prefix == "teacher_" else 1.8  # stays visible where it equals the student's curve
                _curve(axes, histories[0], prefix + key, color=color, label=role, linewidth=width)
        else:
            for color, history in with_colors(histories):
                _curve(axes, history, key, color=color)
                _curve(axes, history, f"teacher_{key}", color=color, linestyle=_DOTTED)
        reference = next((h for h in histories if h.series(baseline)[0]), histories[0])
        _curve(axes, reference, baseline, color=INK, linewidth=1.1, linestyle=_DASHED, label=label)
        axes.set_xlabel("round")
        axes.margins(y=0.12)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4, handlelength=1.4, columnspacing=1.2)

    return svg(draw, f"{key} per round")


def before_and_after(clients: dict[str, ClientResult], key: str, baseline: str, label: str, *, lower: bool) -> str:
    """Draw each client's metric by student (ring) and teacher (dot), and the dashed `baseline`.

    Clients are sorted from the worst student to the best; `lower` is True if lower values are better.
    """
    metrics = [c.metrics for c in clients.values() if key in c.metrics and f"teacher_{key}" in c.metrics]
    rows = sorted(metrics, key=lambda m: (m[key], m[f"teacher_{key}"]), reverse=lower)

    def draw(axes: Axes) -> None:
        share = (np.arange(len(rows)) + 0.5) / max(len(rows), 1) * 100
        size = dot_size(len(rows))
        axes.plot(share, [m.get(baseline, np.nan) for m in rows], "_", color=INK, markersize=size + 3, label=label)
        axes.plot(share, [m[key] for m in rows], "o", color=COLORS[0], mfc="none", markersize=size + 3, label="student")
        axes.plot(share, [m[f"teacher_{key}"] for m in rows], "o", color=COLORS[3], markersize=size, label="teacher")
        axes.set_xlim(0, 100)
        axes.set_xlabel("clients, worst to best student (%)")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=3, handletextpad=0.3)

    return svg(draw, f"{key} per client before and after the teacher")


def _curve(axes: Axes, history: RunRecord, key: str, **style: object) -> None:
    rounds, values = history.series(key)
    if rounds:
        dots = {"marker": "o", "markersize": 4.0} if len(rounds) == 1 else {}
        axes.plot(rounds, values, **{**dots, **style})  # type: ignore[arg-type]
