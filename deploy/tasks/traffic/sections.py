"""What the page says of forecasts: errors and obedience, what the teacher changes, who is in which cluster."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from common.metrics.spec import MetricSpec
from deploy.report.metric_plots import client_spread
from deploy.report.metric_table import format_value, in_order, measure
from deploy.report.run import RunRecord
from deploy.report.sections import Section, Table, figure, figure_of, named, section, table
from deploy.tasks.traffic.figures import assignments, before_and_after, by_round

SHOWN_METRICS = frozenset({"mse", "teacher_mse", "rho_trace"})
"""Metrics that need no other figure once these sections are there."""

_LINES = (("mse", "profile_mse", "profile"), ("rho_trace", "truth_rho_trace", "the truth itself"))
"""Metric, the line beside it, and what that is called."""


def is_forecaster(histories: Sequence[RunRecord]) -> bool:
    """Whether the runs forecast."""
    return any("rho_trace" in r.metrics for history in histories for r in history.rounds)


def learning(histories: Sequence[RunRecord]) -> Section:
    """Error and obedience by round."""
    if not is_forecaster(histories):
        return {}
    figures = [figure_of(measure(key), by_round(histories, key, line, name), _about(key)) for key, line, name in _LINES]
    note = "Student: what a client's model says. Teacher: the closest forecast that obeys the client's own property."
    if len(histories) > 1:
        note += " Solid: students. Dotted: their teachers."
    return section("Forecasts by round", note, figures, _all_metrics(histories[0]) if len(histories) == 1 else None)


def _all_metrics(history: RunRecord) -> Table | None:
    """What the summary leaves out, too."""
    rows = [[m.label, format_value(m, history.final[m.key]), m.meaning] for m in in_order(history.final)]
    return table(f"All {len(rows)} metrics", ["Metric", "Final", "What it says"], rows, "words") if rows else None


def _about(key: str) -> str:
    m = measure(key)
    return m.meaning if key != "rho_trace" else f"{m.meaning} The teacher keeps it always."


def teaching(histories: Sequence[RunRecord]) -> Section:
    """Each client's error and obedience before and after the teacher."""
    found = [h.result.clients for h in histories if h.result and _taught(h)]
    if not found:
        return {}
    note = "The final model on each client's test data."
    if len(found) > 1:
        several = [measure(key) for key in ("mse", "teacher_mse", "rho_trace")]
        return section("Clients before and after the teacher", note, [_spread(histories, m) for m in several])
    figures = [
        figure_of(measure(key), before_and_after(found[0], key, line, name, lower=key == "mse"), _caption(name))
        for key, line, name in _LINES
    ]
    return section("Clients before and after the teacher", note, figures)


def _caption(line: str) -> str:
    return f"Ring: student. Dot: teacher. Dash: {line}."


def _spread(histories: Sequence[RunRecord], m: MetricSpec) -> dict[str, str]:
    return figure_of(m, client_spread(histories, m), m.meaning)


def _taught(history: RunRecord) -> bool:
    clients = history.result.clients.values() if history.result else ()
    return any("teacher_mse" in client.metrics for client in clients)


def clusters(histories: Sequence[RunRecord]) -> Section:
    """Who is with whom, and how assignments moved."""
    grouped = [history for history in histories if history.clusters]
    figures = [figure(_heading(h, histories), "", assignments(h), _moves(h)) for h in grouped]
    note = "Each line is a client, each colour a cluster; clients that end together stand together."
    return section("Clusters", note, figures, _members(grouped[0]) if len(histories) == 1 and grouped else None)


def _heading(history: RunRecord, histories: Sequence[RunRecord]) -> str:
    return "Assignments" if len(histories) == 1 else f"Assignments of {history.run}"


def _moves(history: RunRecord) -> str:
    """How often clients went from one cluster to another, and when the last did."""
    moves = [b[0] for stays in history.clusters.values() for a, b in pairwise(stays) if a[1] != b[1]]
    if not moves:
        return "No client ever changed its cluster."
    times = "once" if len(moves) == 1 else f"{len(moves)} times"
    return f"Clients changed their cluster {times}, for the last time in round {max(moves)}."


def _members(history: RunRecord) -> Table:
    """A row a cluster: its members after the last round, and how their forecasts fare."""
    last = {client: stays[-1][1] for client, stays in history.clusters.items()}
    shown = [measure(key) for key in ("mse", "teacher_mse", "rho_trace")]
    rows: list[list[str]] = []
    for cluster in sorted(set(last.values())):
        members = sorted((client for client, j in last.items() if j == cluster), key=_natural)
        means = [format_value(m, _mean(history, members, m)) for m in shown]
        rows.append([str(cluster), str(len(members)), *means, named(members)])
    header = ["Cluster", "Clients", *(m.short for m in shown), "Who"]
    return table(f"{len(rows)} clusters after the last round", header, rows, "words")


def _mean(history: RunRecord, members: list[str], m: MetricSpec) -> float | None:
    clients = history.result.clients if history.result else {}
    values = [clients[name].metrics[m.key] for name in members if name in clients and m.key in clients[name].metrics]
    return fmean(values) if values else None


def _natural(name: str) -> tuple[str, int, str]:
    """`client-9` before `client-10`."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0), name
