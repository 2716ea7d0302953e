"""Section of the page about clusters: a map of assignments, and the members of each cluster."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes

from common.metrics import MetricSpec
from common.text import count
from deploy.pages.figures import COLORS, svg
from deploy.pages.metrics import format_value, headlines
from deploy.pages.view import RunRecord, Section, Table, figure, named, section, table

MOST_ROWS = 60
"""Clients drawn in a map; of more, evenly chosen ones."""


def clusters(histories: Sequence[RunRecord]) -> Section:
    """Return the section: a map of assignments, how they changed, and the members of each cluster."""
    grouped = [history for history in histories if history.clusters]
    figures = [figure(_heading(h, histories), "", assignments(h), _moves(h)) for h in grouped]
    note = "Each row is a client, each colour a cluster; clients of one final cluster stand together."
    return section("Clusters", note, figures, _members(grouped[0]) if len(histories) == 1 and grouped else None)


def _heading(history: RunRecord, histories: Sequence[RunRecord]) -> str:
    return "Assignments" if len(histories) == 1 else f"Assignments of {history.run}"


def _moves(history: RunRecord) -> str:
    """Return the number of changes of cluster, and the round of the last one, as a sentence."""
    moves = [b[0] for stays in history.clusters.values() for a, b in pairwise(stays) if a[1] != b[1]]
    if not moves:
        return "No client changed its cluster."
    times = "once" if len(moves) == 1 else f"{len(moves)} times"
    return f"Clients changed their cluster {times}, for the last time in round {max(moves)}."


def _members(history: RunRecord) -> Table:
    """Return a table with one row a cluster: its members after the last round, and their mean metrics."""
    last = {client: stays[-1][1] for client, stays in history.clusters.items()}
    clients = history.result.clients.values() if history.result else ()
    shown = headlines({key for client in clients for key in client.metrics} - {"loss"})
    rows: list[list[str]] = []
    for cluster in sorted(set(last.values())):
        members = sorted((client for client, j in last.items() if j == cluster), key=_natural)
        means = [format_value(m, _mean(history, members, m)) for m in shown]
        rows.append([str(cluster), str(len(members)), *means, named(members)])
    header = ["Cluster", "Clients", *(m.short for m in shown), "Members"]
    return table(f"{count(len(rows), 'cluster')} after the last round", header, rows, "words")


def _mean(history: RunRecord, members: list[str], m: MetricSpec) -> float | None:
    clients = history.result.clients if history.result else {}
    values = [clients[name].metrics[m.key] for name in members if name in clients and m.key in clients[name].metrics]
    return fmean(values) if values else None


def _natural(name: str) -> tuple[str, int, str]:
    """Return a key that sorts `client-9` before `client-10`."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0), name


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


def _spans(stays: list[tuple[int, int]]) -> dict[int, list[tuple[float, float]]]:
    """Return cluster -> (begin, length) of each unbroken stay."""
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
