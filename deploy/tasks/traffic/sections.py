"""Sections on forecasts: error and satisfaction of the property, by round and by client."""

from collections.abc import Sequence

from common.metrics.spec import MetricSpec
from deploy.report.metric_plots import client_spread
from deploy.report.metric_table import format_value, in_order, measure
from deploy.report.run import RunRecord
from deploy.report.sections import Section, Table, figure_of, section, table
from deploy.tasks.traffic.figures import before_and_after, by_round

DRAWN = frozenset({"mse", "teacher_mse", "rho_trace"})
"""Metrics that need no other figure on a page with these sections."""

_REFERENCES = (("mse", "profile_mse", "profile"), ("rho_trace", "truth_rho_trace", "the truth itself"))
"""Metric, the metric of its reference, and the name of the reference."""


def is_forecaster(histories: Sequence[RunRecord]) -> bool:
    """Return True if one of the runs forecasts."""
    return any("rho_trace" in r.metrics for history in histories for r in history.rounds)


def learning(histories: Sequence[RunRecord]) -> Section:
    """Return error and satisfaction of the property by round."""
    if not is_forecaster(histories):
        return {}
    figures = [
        figure_of(measure(key), by_round(histories, key, reference, name), _about(key))
        for key, reference, name in _REFERENCES
    ]
    note = "Student: forecast of a client's model. Teacher: closest forecast that satisfies the client's own property."
    if len(histories) == 1:
        note += _formula(histories[0])
    if len(histories) > 1:
        note += " Solid: students. Dotted: their teachers."
    metrics = _all_metrics(histories[0]) if len(histories) == 1 else None
    return section("Forecasts by round", note, figures, metrics) | {"metrics": DRAWN}


def _formula(history: RunRecord) -> str:
    """Return the formula of a run as a sentence; empty without one."""
    text = str(history.config.get("tasks.traffic.formula", ""))
    return f" The property of every client is the formula {text}." if text else ""


def _all_metrics(history: RunRecord) -> Table | None:
    """Return every final metric, also those that short tables leave out."""
    rows = [[m.label, format_value(m, history.final[m.key]), m.meaning] for m in in_order(history.final)]
    return table(f"All {len(rows)} metrics", ["Metric", "Final", "Meaning"], rows, "words") if rows else None


def _about(key: str) -> str:
    m = measure(key)
    return m.meaning if key != "rho_trace" else f"{m.meaning} The teacher always satisfies it."


def teaching(histories: Sequence[RunRecord]) -> Section:
    """Return each client's error and satisfaction of the property before and after the teacher."""
    clients = [h.result.clients for h in histories if h.result and _has_teacher(h)]
    if not clients:
        return {}
    note = "The final model on each client's test data."
    if len(clients) > 1:
        several = [measure(key) for key in ("mse", "teacher_mse", "rho_trace")]
        return section("Clients before and after the teacher", note, [_spread(histories, m) for m in several])
    figures = [
        figure_of(measure(key), before_and_after(clients[0], key, reference, name, lower=key == "mse"), _caption(name))
        for key, reference, name in _REFERENCES
    ]
    return section("Clients before and after the teacher", note, figures)


def _caption(reference: str) -> str:
    return f"Ring: student. Dot: teacher. Dash: {reference}."


def _spread(histories: Sequence[RunRecord], m: MetricSpec) -> dict[str, str]:
    return figure_of(m, client_spread(histories, m), m.meaning)


def _has_teacher(history: RunRecord) -> bool:
    clients = history.result.clients.values() if history.result else ()
    return any("teacher_mse" in client.metrics for client in clients)
