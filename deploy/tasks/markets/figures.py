"""Bars market by market, as in the paper's Figure 3: every run's model beside the lines that need no training."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from deploy.report.metric_table import measure
from deploy.report.run import RunRecord, labels
from deploy.report.sections import Section, figure_of, section
from deploy.report.svg import COLORS, SERIES, svg
from deploy.tasks.markets.figures_by_size import FADED, LINES, sizes

SHOWN = ("mrr20", "ndcg20", "seen_mrr20", "seen_ndcg20")
"""Metrics that have bars, where they were measured."""

MOST = 20
"""Markets that bars are drawn of; of more, the first by name."""

Values = dict[str, dict[str, float]]
"""Name of a bar -> market -> its value."""


def bars(histories: Sequence[RunRecord]) -> Section:
    """The section; empty for other tasks."""
    ours = [history for history in histories if history.result and history.config.get("task") == "markets"]
    figures = []
    for key in SHOWN:
        values = _values(ours, key)
        if any(values.values()):
            m = measure(key)
            figures.append(figure_of(m, _drawn(values, len(ours), m.label), m.meaning))
    return section("Markets", "The final models in each market, beside lines that need none.", [*figures, *sizes(ours)])


def _values(histories: Sequence[RunRecord], key: str) -> Values:
    """Of every run, and of the lines as the first run that has them measured them."""
    found: Values = {}
    for label, history in zip(labels(histories), histories, strict=True):
        own = "model" if len(histories) == 1 else label
        found[own] = _of(history, key)
    for prefix, name in LINES.items():
        found[name] = next((told for history in histories if (told := _of(history, f"{prefix}{key}"))), {})
    return found


def _of(history: RunRecord, key: str) -> dict[str, float]:
    clients = history.result.clients if history.result else {}
    return {history.called(name): client.metrics[key] for name, client in clients.items() if key in client.metrics}


def _drawn(values: Values, runs: int, title: str) -> str:
    markets = sorted({name for told in values.values() for name in told})[:MOST]
    coloured = [(name, COLORS[k % SERIES], 1.0 if k < runs else FADED) for k, name in enumerate(values)]
    told = [(name, values[name], colour, alpha) for name, colour, alpha in coloured if values[name]]

    def draw(axes: Axes) -> None:
        width = 0.8 / len(told)
        for k, (name, known, colour, alpha) in enumerate(told):
            places = np.arange(len(markets)) + (k - (len(told) - 1) / 2) * width
            heights = [known.get(market, 0.0) for market in markets]
            axes.bar(places, heights, 0.9 * width, color=colour, alpha=alpha, label=name)
        axes.set_xticks(range(len(markets)), markets, rotation=45 if len(markets) > 8 else 0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)
        axes.set_ylim(bottom=0)

    return svg(draw, f"{title} by market", 3.3)
