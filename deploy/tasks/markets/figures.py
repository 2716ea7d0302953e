"""Figures by market: bars as in the paper's Figure 3, and metrics by the size of the market."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from deploy.pages.figures import COLORS, INK, SERIES, svg
from deploy.pages.view import RunRecord, Section, figure, figure_of, labels, measure, section

METRIC = "mrr20"

BASELINES = {"walk_": "random walk", "shared_": "popularity and other markets", "degree_": "popularity"}
"""Prefix of a baseline's metrics -> its name."""

BASELINE_ALPHA = 0.45
"""Opacity of the baselines."""

MAX_NAMED = 8
"""Maximum number of markets whose names are drawn."""

WIDE_RATIO = 300
"""Ratio of the largest market to the smallest from which only powers of ten are labeled."""

Points = dict[str, tuple[int, float]]
"""Market -> number of its training pairs, and the metric."""


@dataclass(frozen=True)
class Dots:
    """Points of a model or baseline, one for each market, in one colour."""

    label: str
    points: Points
    colour: str
    alpha: float


def sizes(histories: Sequence[RunRecord]) -> list[dict[str, str]]:
    """Return the figure of runs of task markets; none if sizes are equal, or hidden by DP noise."""
    names = ["model"] if len(histories) == 1 else labels(histories)
    plain = [(k, h) for k, h in enumerate(histories) if not h.noisy and _points(h, METRIC)]
    models = [Dots(names[k], _points(h, METRIC), COLORS[k % SERIES], 1.0) for k, h in plain]
    if len({pairs for dots in models for pairs, _ in dots.points.values()}) < 2:
        return []
    cold = any(h.config.get("tasks.markets.protocol") == "cold" for _, h in plain)
    prefix = "degree_" if cold else "walk_"  # no walk starts at an item whose pairs are all held out
    points = next(filter(None, (_points(h, f"{prefix}{METRIC}") for _, h in plain)), {})
    colour = COLORS[(len(histories) + list(BASELINES).index(prefix)) % SERIES]
    baseline = Dots(BASELINES[prefix], points, colour, BASELINE_ALPHA)
    gain = f"; strokes: its gain over {baseline.label}" if points and len(models) == 1 else ""
    m = measure(METRIC)
    caption = f"Each market by the number of its training pairs{gain}."
    return [figure(f"{m.label} by size of market", m.better, _draw_sizes(models, baseline), caption)]


def _points(history: RunRecord, key: str) -> Points:
    """Return the points of markets with training pairs; others have no place on a logarithmic axis."""
    clients = history.result.clients if history.result else {}
    return {
        history.called(name): (client.examples, client.metrics[key])
        for name, client in clients.items()
        if client.examples and key in client.metrics
    }


def _draw_sizes(models: Sequence[Dots], baseline: Dots) -> str:
    """Draw the models' dots, and the baseline's, paler; strokes join the two if there is one model."""
    groups = [*models, baseline] if baseline.points else models

    def draw(axes: Axes) -> None:
        for k, dots in enumerate(groups):
            pairs, values = zip(*dots.points.values(), strict=True)
            colour, alpha, label = dots.colour, dots.alpha, dots.label
            axes.plot(pairs, values, "o", color=colour, markersize=5.5, alpha=alpha, label=label, zorder=9 - k)
        for market in sorted(models[0].points.keys() & baseline.points.keys()) if len(models) == 1 else ():
            size, value = models[0].points[market]
            axes.vlines(size, baseline.points[market][1], value, color=models[0].colour, linewidth=1.0)
        _name(axes, groups)
        _scale(axes, [pairs for dots in groups for pairs, _ in dots.points.values()])
        axes.set_ylim(0, 1.1 * max(value for dots in groups for _, value in dots.points.values()) or 1)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)

    return svg(draw, f"{measure(METRIC).label} of each market by its training pairs", 3.3)


def _scale(axes: Axes, pairs: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.margins(x=0.12)  # room for names above the outermost dots
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(pairs) < WIDE_RATIO * min(pairs) else (1,)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.set_xlabel("training pairs")


def _name(axes: Axes, groups: Sequence[Dots]) -> None:
    """Write each market's name above its highest dot, if there are few markets."""
    highest: Points = {}
    for dots in groups:
        for market, point in dots.points.items():
            highest[market] = max(highest.get(market, point), point, key=lambda p: p[1])
    for market, point in highest.items() if len(highest) <= MAX_NAMED else ():
        axes.annotate(market, point, (0, 5), textcoords="offset points", ha="center", fontsize=7.5, color=INK)


METRICS = ("mrr20", "ndcg20", "seen_mrr20", "seen_ndcg20")
"""Metrics with bars, if a run measured them."""

MAX_MARKETS = 20
"""Maximum number of markets in a figure: the first by name."""

Values = dict[str, dict[str, float]]
"""Label of a bar -> market -> value of the metric."""


def bars(histories: Sequence[RunRecord]) -> Section:
    """Return the section on runs of task markets; empty if there are none."""
    ours = [history for history in histories if history.result and history.config.get("task") == "markets"]
    figures = []
    for key in METRICS:
        values = _values(ours, key)
        if any(values.values()):
            m = measure(key)
            figures.append(figure_of(m, _draw(values, len(ours), m.label), m.meaning))
    return section("Markets", "The final models in each market, beside untrained baselines.", [*figures, *sizes(ours)])


def _values(histories: Sequence[RunRecord], key: str) -> Values:
    """Return the values of every run, and of the baselines by the first run that measured them."""
    names = ["model"] if len(histories) == 1 else labels(histories)
    values = {name: _by_market(history, key) for name, history in zip(names, histories, strict=True)}
    for prefix, name in BASELINES.items():
        measured = (_by_market(history, f"{prefix}{key}") for history in histories)
        values[name] = next(filter(None, measured), {})
    return values


def _by_market(history: RunRecord, key: str) -> dict[str, float]:
    clients = history.result.clients if history.result else {}
    return {history.called(name): client.metrics[key] for name, client in clients.items() if key in client.metrics}


def _draw(values: Values, runs: int, title: str) -> str:
    markets = sorted({market for by_market in values.values() for market in by_market})[:MAX_MARKETS]
    styles = {name: (COLORS[k % SERIES], 1.0 if k < runs else BASELINE_ALPHA) for k, name in enumerate(values)}
    names = [name for name in values if values[name]]

    def draw(axes: Axes) -> None:
        width = 0.8 / len(names)
        for k, name in enumerate(names):
            places = np.arange(len(markets)) + (k - (len(names) - 1) / 2) * width
            heights = [values[name].get(market, 0.0) for market in markets]
            colour, alpha = styles[name]
            axes.bar(places, heights, 0.9 * width, color=colour, alpha=alpha, label=name)
        axes.set_xticks(range(len(markets)), markets, rotation=45 if len(markets) > 8 else 0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)
        axes.set_ylim(bottom=0)

    return svg(draw, f"{title} by market", 3.3)
