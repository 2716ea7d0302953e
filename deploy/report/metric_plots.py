"""Figures of all tasks."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from common.metrics.spec import MetricSpec
from deploy.report.metric_table import EXAMPLES, curve, format_value
from deploy.report.run import RunRecord, client_values
from deploy.report.svg import INK, dot_size, svg, with_colors
from server.events import Round

MAX_DOTS = 400
"""Clients drawn in a spread; of more, evenly spaced ones."""

MEDIAN_RATE = "rate_p50"
"""Key of an adaptive method's step size; see `server.aggregation.optimizers.effective_rates`."""


def metric_curves(histories: Sequence[RunRecord], m: MetricSpec) -> str:
    """Plot the metric of each run's global model per round; for the loss, also the training loss, dashed."""

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
            _mark_best(axes, rounds, values, m, color)
        axes.set_xlabel("round")

    return svg(draw, f"{m.label} per round")


def hit_rates(histories: Sequence[RunRecord]) -> str:
    """Plot the hit rate of each run's final model against the length of the list."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            points = curve(history.final)
            axes.plot(list(points), list(points.values()), color=color, marker="o", markersize=4.5)
        axes.set_xticks(sorted({n for history in histories for n in curve(history.final)}))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("suggestions shown, N")

    return svg(draw, "Hit rate at N")


def client_spread(histories: Sequence[RunRecord], m: MetricSpec) -> str:
    """Plot each client as a dot, sorted from worst to best, with the median as a dashed rule."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            values = np.sort(client_values(history, m))[:: -1 if m.better == "lower" else 1]
            if len(values):
                shown = np.unique(np.linspace(0, len(values) - 1, min(len(values), MAX_DOTS)).astype(int))
                share = (shown + 0.5) / len(values) * 100
                axes.plot(
                    share,
                    values[shown],
                    color=color,
                    linestyle="none",
                    marker="o",
                    markersize=dot_size(len(shown)),
                    alpha=0.8,
                )
                axes.axhline(float(np.median(values)), color=color, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set_xlim(0, 100)
        axes.set_xlabel("clients, worst to best (%)" if m.better else "clients, sorted (%)")
        if m is EXAMPLES:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()

    return svg(draw, f"{m.label} per client")


def per_round(histories: Sequence[RunRecord], label: str, value: Callable[[Round], float]) -> str:
    """Plot a quantity of the rounds."""

    def draw(axes: Axes) -> None:
        for color, history in with_colors(histories):
            rounds = [r.round for r in history.rounds]
            if len(rounds) == 1:
                only = value(history.rounds[0])
                _mark_value(axes, rounds[0], only, f"{only:.3g}", color)
                continue
            axes.plot(
                rounds,
                list(map(value, history.rounds)),
                color=color,
                drawstyle="steps-mid",
                linewidth=1.4,
            )
        axes.set_ylim(0, max(axes.get_ylim()[1], 1e-9))
        axes.set_xlabel("round")

    return svg(draw, label)


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
        axes.set_xlabel("round")

    return svg(draw, "Server step size per round")


def _mark_value(axes: Axes, number: int, value: float, text: str, color: str) -> None:
    """Plot the only round of a run as a dot with its value."""
    if not math.isfinite(value):
        return
    axes.plot([number], [value], color=color, marker="o", markersize=6)
    axes.annotate(text, (number, value), xytext=(8, 5), textcoords="offset points", color=INK)
    axes.set_xlim(number - 0.5, number + 0.5)
    axes.margins(y=0.4)


def _mark_best(axes: Axes, rounds: list[int], values: list[float], m: MetricSpec, color: str) -> None:
    if m.better and any(not math.isnan(v) for v in values):
        best = int(np.nanargmin(values) if m.better == "lower" else np.nanargmax(values))
        axes.plot(rounds[best], values[best], color=color, marker="o", markersize=5.5)
