"""The figures of forecasts: before and after the teacher, and who is in which cluster."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from deploy.report.run import RunRecord
from deploy.report.svg import COLORS, INK, dot_size, svg, with_colors
from server.events import ClientResult

ROLES = {"": "student", "cluster_": "cluster model", "global_": "shared model", "teacher_": "teacher"}
"""Prefix of a metric -> who made the forecast."""

MOST_ROWS = 60
"""Clients drawn in a map; of more, evenly chosen ones."""

_DASHED, _DOTTED = (0, (4, 3)), (0, (1, 1.5))


def by_round(histories: Sequence[RunRecord], key: str, line: str, called: str) -> str:
    """A metric of each forecaster per round beside the dashed `line`; of several runs, student and dotted teacher only."""

    def draw(axes: Axes) -> None:
        if len(histories) == 1:
            for (prefix, role), colour in zip(ROLES.items(), COLORS, strict=False):
                width = 1.1 if prefix == "teacher_" else 1.8  # where nothing is corrected the two lie on each other
                _curve(axes, histories[0], prefix + key, color=colour, label=role, linewidth=width)
        else:
            for colour, history in with_colors(histories):
                _curve(axes, history, key, color=colour)
                _curve(axes, history, f"teacher_{key}", color=colour, linestyle=_DOTTED)
        reference = next((h for h in histories if h.series(line)[0]), histories[0])
        _curve(axes, reference, line, color=INK, linewidth=1.1, linestyle=_DASHED, label=called)
        axes.set_xlabel("round")
        axes.margins(y=0.12)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4, handlelength=1.4, columnspacing=1.2)

    return svg(draw, f"{key} per round")


def before_and_after(clients: dict[str, ClientResult], key: str, line: str, called: str, *, lower: bool) -> str:
    """Each client's metric by student, ring, and teacher, dot, beside its dashed `line`; worst student first."""
    have = [c.metrics for c in clients.values() if key in c.metrics and f"teacher_{key}" in c.metrics]
    rows = sorted(have, key=lambda m: (m[key], m[f"teacher_{key}"]), reverse=lower)

    def draw(axes: Axes) -> None:
        share = (np.arange(len(rows)) + 0.5) / max(len(rows), 1) * 100
        size = dot_size(len(rows))
        axes.plot(share, [m.get(line, np.nan) for m in rows], "_", color=INK, markersize=size + 3, label=called)
        axes.plot(share, [m[key] for m in rows], "o", color=COLORS[0], mfc="none", markersize=size + 3, label="student")
        axes.plot(share, [m[f"teacher_{key}"] for m in rows], "o", color=COLORS[3], markersize=size, label="teacher")
        axes.set_xlim(0, 100)
        axes.set_xlabel("clients, worst to best student (%)")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=3, handletextpad=0.3)

    return svg(draw, f"{key} per client before and after the teacher")


def assignments(history: RunRecord) -> str:
    """Clients × rounds, coloured by cluster; clients that end together stand together."""
    stays = history.clusters
    order = sorted(stays, key=lambda client: (stays[client][-1][1], [j for _, j in stays[client]], client))
    shown = [order[k] for k in np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_ROWS)).astype(int))]

    def draw(axes: Axes) -> None:
        for row, client in enumerate(shown):
            for cluster, spans in _spans(stays[client]).items():
                axes.broken_barh(spans, (row - 0.44, 0.88), facecolors=_colour(cluster), linewidth=0)
        last = [stays[client][-1][1] for client in shown]
        for cluster in sorted(set(last)):
            middle = float(np.mean([row for row, j in enumerate(last) if j == cluster]))
            axes.annotate(
                f"cluster {cluster}",
                (1.01, middle),
                xycoords=("axes fraction", "data"),
                color=_colour(cluster),
                va="center",
            )
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.yaxis.set_visible(False)
        axes.set_xlim(history.rounds[0].round - 0.5, history.rounds[-1].round + 0.5)
        axes.set_xlabel("round")

    return svg(draw, "Clusters of clients per round", max(1.6, 0.5 + 0.13 * len(shown)))


def _curve(axes: Axes, history: RunRecord, key: str, **style: object) -> None:
    rounds, values = history.series(key)
    if rounds:
        dots = {"marker": "o", "markersize": 4.0} if len(rounds) == 1 else {}
        axes.plot(rounds, values, **{**dots, **style})  # type: ignore[arg-type]


def _spans(stays: list[tuple[int, int]]) -> dict[int, list[tuple[float, float]]]:
    """Cluster -> (begin, length) of each unbroken stay."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for k, (round_, cluster) in enumerate(stays):
        own = spans.setdefault(cluster, [])
        if k and stays[k - 1] == (round_ - 1, cluster):
            own[-1] = (own[-1][0], own[-1][1] + 1)
        else:
            own.append((round_ - 0.5, 1.0))
    return spans


def _colour(cluster: int) -> str:
    return COLORS[cluster % len(COLORS)]
