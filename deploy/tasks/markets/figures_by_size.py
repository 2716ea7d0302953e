"""How markets differ: what models, and a line that needs no training, are worth in small markets and in large ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from deploy.report.metric_table import measure
from deploy.report.run import RunRecord, labels
from deploy.report.sections import figure
from deploy.report.svg import COLORS, INK, SERIES, svg

METRIC = "mrr20"
LINES = {"walk_": "random walk", "shared_": "popularity and other markets", "degree_": "popularity"}
FADED = 0.45
"""Opacity of the lines."""

MOST_NAMED = 8
"""Markets that have their names beside them."""

WIDE = 300
"""Times the smallest market that the largest is, from which on there is room for powers of ten only."""

Points = dict[str, tuple[int, float]]
"""Market -> its training pairs, and the metric."""


@dataclass(frozen=True)
class Dots:
    """One of each market, in one colour."""

    label: str
    points: Points
    colour: str
    alpha: float


def sizes(histories: Sequence[RunRecord]) -> list[dict[str, str]]:
    """The figure of runs of task markets; none where sizes are alike, or where noise hides them."""
    names = ["model"] if len(histories) == 1 else labels(histories)
    known = [(k, h) for k, h in enumerate(histories) if not h.noisy and _points(h, METRIC)]
    models = [Dots(names[k], _points(h, METRIC), COLORS[k % SERIES], 1.0) for k, h in known]
    if len({pairs for dots in models for pairs, _ in dots.points.values()}) < 2:
        return []
    cold = any(h.config.get("tasks.markets.protocol") == "cold" for _, h in known)
    prefix = "degree_" if cold else "walk_"  # no walk starts where all of an item's pairs are held out
    points = next((found for _, h in known if (found := _points(h, f"{prefix}{METRIC}"))), {})
    colour = COLORS[(len(histories) + list(LINES).index(prefix)) % SERIES]
    line = Dots(LINES[prefix], points, colour, FADED)
    gain = f"; strokes: what it gains over {line.label}" if points and len(models) == 1 else ""
    m = measure(METRIC)
    caption = f"Each market by the pairs that it trained on{gain}."
    return [figure(f"{m.label} by size of market", m.better, _drawn(models, line), caption)]


def _points(history: RunRecord, key: str) -> Points:
    """Of markets that trained on something: a logarithm has no place for others."""
    clients = history.result.clients if history.result else {}
    told = {history.called(name): client for name, client in clients.items()}
    return {name: (c.examples, c.metrics[key]) for name, c in told.items() if c.examples and key in c.metrics}


def _drawn(models: Sequence[Dots], line: Dots) -> str:
    """The models' dots, and the line's, paler; with one model, strokes between the two."""
    every = [*models, line] if line.points else models

    def draw(axes: Axes) -> None:
        for k, one in enumerate(every):
            pairs, values = zip(*one.points.values(), strict=True)
            axes.plot(
                pairs, values, "o", color=one.colour, markersize=5.5, alpha=one.alpha, label=one.label, zorder=9 - k
            )
        if len(models) == 1:
            _stroke(axes, models[0], line)
        _name(axes, every)
        _scale(axes, [pairs for one in every for pairs, _ in one.points.values()])
        axes.set_ylim(0, 1.1 * max(value for one in every for _, value in one.points.values()) or 1)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)

    return svg(draw, f"{measure(METRIC).label} of each market by its training pairs", 3.3)


def _scale(axes: Axes, pairs: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.margins(x=0.12)  # room for names above the outermost
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(pairs) < WIDE * min(pairs) else (1,)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.set_xlabel("training pairs")


def _stroke(axes: Axes, model: Dots, line: Dots) -> None:
    for market in sorted(model.points.keys() & line.points.keys()):
        pairs, value = model.points[market]
        axes.vlines(pairs, line.points[market][1], value, color=model.colour, linewidth=1.0)


def _name(axes: Axes, every: Sequence[Dots]) -> None:
    """Vocabulary above the highest dot of each market, where there are few."""
    highest: Points = {}
    for dots in every:
        for market, point in dots.points.items():
            highest[market] = max(highest.get(market, point), point, key=lambda p: p[1])
    for market, point in highest.items() if len(highest) <= MOST_NAMED else ():
        axes.annotate(market, point, (0, 5), textcoords="offset points", ha="center", fontsize=7.5, color=INK)
