"""Figures of all tasks, as SVG text with CSS variables as colors."""

import io
import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, TypeVar

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from common.metrics import EXAMPLES, MetricSpec
from deploy.pages.view import RunRecord, client_values, curve, format_value
from server.record.events import RoundEvent

T = TypeVar("T")

SERIES = 6
"""Number of colors; the seventh run has the first one's again."""

WIDTH, HEIGHT = 5.0, 2.7
"""Size of a figure in inches."""

INK, FAINT = "#000001", "#000002"  # placeholders, replaced by CSS variables in the SVG text
COLORS = tuple(f"#0000{i + 16:02x}" for i in range(SERIES))
_VARIABLES = {INK: "var(--ink-soft)", FAINT: "var(--rule)"} | {
    c: f"var(--series-{i + 1})" for i, c in enumerate(COLORS)
}
_STYLE = {
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "fedloom",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
}


def with_colors(runs: Sequence[T]) -> list[tuple[str, T]]:
    """Return each run with its color."""
    return [(COLORS[i % SERIES], run) for i, run in enumerate(runs)]


def dot_size(count: int) -> float:
    """Return the marker size for that number of dots."""
    return max(2.0, 7.0 - 1.6 * math.log10(count + 1))


def svg(draw: Callable[[Axes], None], title: str, height: float = HEIGHT, x: str = "") -> str:
    """Return the figure that `draw` fills; `title` is its accessible name, `x` its horizontal label."""
    with rc_context(_STYLE):  # type: ignore[arg-type]  # its keys are typed as literals
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        axes.set_xlabel(x or axes.get_xlabel())
        if axes.get_yscale() == "linear":
            axes.yaxis.set_major_locator(MaxNLocator(5))
        if axes.get_xlabel() == "round":
            axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()[text.getvalue().index("<svg") :]
    for color, variable in _VARIABLES.items():
        drawn = drawn.replace(color, variable)
    drawn = re.sub(r"font-family: [^;\"]+;?", "", drawn)  # the page sets the typeface
    head = f'<svg role="img" aria-label="{escape(title)}"'
    return re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.S).replace("<svg", head, 1)


MAX_DOTS = 400
"""Clients drawn in a spread; of more, evenly spaced ones."""

MEDIAN_RATE = "rate_p50"
"""Key of an adaptive method's step size; see `server.aggregation.optimizers.effective_rates`."""


def metric_curves(histories: Sequence[RunRecord], m: MetricSpec) -> str:
    """Plot the metric of each run's global model per round; for the loss, also the training loss, dashed.

    A dot marks the best round by the objective.
    """

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            if m.key == "loss" and history.reports_error:
                rounds = [r.round for r in history.rounds]
                axes.plot(rounds, [r.loss for r in history.rounds], color=color, linewidth=1.2, linestyle=(0, (2, 2)))
            rounds, values = history.series(m.key)
            if len(rounds) == 1:
                _mark_value(axes, rounds[0], values[0], format_value(m, values[0]), color)
                continue
            axes.plot(rounds, values, color=color)
            if history.best_round in rounds:
                best = rounds.index(history.best_round)
                axes.plot(rounds[best], values[best], color=color, marker="o", markersize=5.5)

    return svg(draw, f"{m.label} per round", x="round")


def hit_rates(histories: Sequence[RunRecord]) -> str:
    """Plot the hit rate of each run's final model against the length of the list."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            points = curve(history.final)
            axes.plot(list(points), list(points.values()), color=color, marker="o", markersize=4.5)
        axes.set_xticks(sorted({n for history in histories for n in curve(history.final)}))
        axes.set_ylim(bottom=0)

    return svg(draw, "Hit rate at N", x="suggestions shown, N")


def client_spread(histories: Sequence[RunRecord], m: MetricSpec) -> str:
    """Plot each client as a dot, sorted from worst to best, with the median as a dashed rule."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            values = np.sort(client_values(history, m))[:: -1 if m.better == "lower" else 1]
            if len(values):
                shown = np.unique(np.linspace(0, len(values) - 1, min(len(values), MAX_DOTS)).astype(int))
                share = (shown + 0.5) / len(values) * 100
                dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": dot_size(len(shown))}
                axes.plot(share, values[shown], color=color, alpha=0.8, **dots)
                axes.axhline(float(np.median(values)), color=color, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set_xlim(0, 100)
        axes.set_xlabel("clients, worst to best (%)" if m.better else "clients, sorted (%)")
        if m is EXAMPLES:
            low, high = axes.get_ylim()
            axes.set_ylim(low, high if high > low else low + 1)
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()

    return svg(draw, f"{m.label} per client")


def per_round(histories: Sequence[RunRecord], label: str, value: Callable[[RoundEvent], float]) -> str:
    """Plot a quantity of the rounds."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            rounds = [r.round for r in history.rounds]
            if len(rounds) == 1:
                only = value(history.rounds[0])
                _mark_value(axes, rounds[0], only, f"{only:.3g}", color)
                continue
            values = list(map(value, history.rounds))
            axes.plot(rounds, values, color=color, drawstyle="steps-mid", linewidth=1.4)
        axes.set_ylim(0, max(axes.get_ylim()[1], 1e-9))

    return svg(draw, label, x="round")


def step_rates(histories: Sequence[RunRecord]) -> str:
    """Plot the adaptive server's step size per parameter, η/(√v + τ): median, and 5th to 95th percentile."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            adaptive = [r for r in history.rounds if MEDIAN_RATE in r.server]
            rounds = [r.round for r in adaptive]
            low, middle, high = ([r.server[key] for r in adaptive] for key in ("rate_p5", MEDIAN_RATE, "rate_p95"))
            axes.fill_between(rounds, low, high, color=color, alpha=0.15, linewidth=0)
            axes.plot(rounds, middle, color=color)
        axes.set_yscale("log")

    return svg(draw, "Server step size per round", x="round")


def _mark_value(axes: Axes, number: int, value: float, text: str, color: str) -> None:
    """Plot the only round of a run as a dot with its value."""
    if not math.isfinite(value):
        return
    axes.plot([number], [value], color=color, marker="o", markersize=6)
    axes.annotate(text, (number, value), xytext=(8, 5), textcoords="offset points", color=INK)
    axes.set_xlim(0.5, number + 0.5)
    axes.margins(y=0.4)


MOST_ROWS = 60
"""Clients drawn in a map of clusters; of more, evenly chosen ones."""


def assignments(history: RunRecord) -> str:
    """Draw clients × rounds, coloured by cluster; clients of one final cluster stand together."""
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
            ends = ("axes fraction", "data")
            axes.annotate(f"cluster {cluster}", (1.01, middle), xycoords=ends, color=_colour(cluster), va="center")
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.yaxis.set_visible(False)
        axes.set_xlim(history.rounds[0].round - 0.5, history.rounds[-1].round + 0.5)

    return svg(draw, "Clusters of clients per round", max(1.6, 0.5 + 0.13 * len(shown)), "round")


def _spans(stays: list[tuple[int, int]]) -> dict[int, list[tuple[float, float]]]:
    """Return cluster -> (begin, length) of each unbroken stay."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for k, (round_, cluster) in enumerate(stays):
        of_cluster = spans.setdefault(cluster, [])
        if k and stays[k - 1] == (round_ - 1, cluster):
            of_cluster[-1] = (of_cluster[-1][0], of_cluster[-1][1] + 1)
        else:
            of_cluster.append((round_ - 0.5, 1.0))
    return spans


def _colour(cluster: int) -> str:
    return COLORS[cluster % len(COLORS)]
