"""Sections on forecasts: error and satisfaction of the property, by round and by client."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from deploy.pages.figures import COLORS, INK, client_spread, dot_size, svg, with_colors
from deploy.pages.view import RunRecord, Section, figure_of, format_value, in_order, measure, section, table
from server.record.result import ClientResult

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


DRAWN = frozenset({"mse", "teacher_mse", "rho_trace"})
"""Metrics that need no other figure on a page with these sections."""

_REFERENCES = (("mse", "profile_mse", "profile"), ("rho_trace", "truth_rho_trace", "the truth itself"))
"""Metric, the metric of its reference, and the name of the reference."""


def learning(histories: Sequence[RunRecord]) -> Section:
    """Return error and satisfaction of the property by round; nothing of runs that do not forecast."""
    if not any("rho_trace" in r.metrics for history in histories for r in history.rounds):
        return {}
    figures = [
        figure_of(measure(key), by_round(histories, key, reference, name), f"{measure(key).meaning}{more}")
        for (key, reference, name), more in zip(
            _REFERENCES, ("", " The teacher always satisfies a formula."), strict=True
        )
    ]
    note = "Student: forecast of a client's model. Teacher: the same, moved to the client's own property."
    if len(histories) > 1:
        note += " Solid: students. Dotted: their teachers."
    elif formula := histories[0].config.get("tasks.traffic.formula"):
        note += f" The property of every client is the formula {formula}."
    metrics = None
    if len(histories) == 1 and (final := histories[0].final):  # also those that short tables leave out
        rows = [[m.label, format_value(m, final[m.key]), m.meaning] for m in in_order(final)]
        metrics = table(f"All {len(rows)} metrics", ["Metric", "Final", "Meaning"], rows, "words")
    return section("Forecasts by round", note, figures, metrics) | {"metrics": DRAWN}


def teaching(histories: Sequence[RunRecord]) -> Section:
    """Return each client's error and satisfaction of the property before and after the teacher."""
    results = [history.result.clients for history in histories if history.result]
    clients = [one for one in results if any("teacher_mse" in client.metrics for client in one.values())]
    if not clients:
        return {}
    note = "The final model on each client's test data."
    if len(clients) > 1:
        several = [measure(key) for key in ("mse", "teacher_mse", "rho_trace")]
        figures = [figure_of(m, client_spread(histories, m), m.meaning) for m in several]
    else:
        figures = [
            figure_of(
                measure(key),
                before_and_after(clients[0], key, reference, name, lower=key == "mse"),
                f"Ring: student. Dot: teacher. Dash: {name}.",
            )
            for key, reference, name in _REFERENCES
        ]
    return section("Clients before and after the teacher", note, figures)
