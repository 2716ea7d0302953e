"""Bars by market, as in the paper's Figure 3: the model of each run beside untrained baselines."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from deploy.report.metric_table import measure
from deploy.report.run import RunRecord, labels
from deploy.report.sections import Section, figure_of, section
from deploy.report.svg import COLORS, SERIES, svg
from deploy.tasks.markets.figures_by_size import BASELINE_ALPHA, BASELINES, sizes

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
