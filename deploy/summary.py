"""Summary of a result, as a table for a terminal or as aligned text for a log."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.box import HORIZONTALS
from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.metrics.spec import MetricSpec
from common.text import count
from deploy.report.metric_table import brief, format_value, local_metrics
from deploy.report.noise_cost import statement_of
from deploy.report.sections import ARROW
from deploy.report.text import COMMAND_MARK, duration, measured_by, size, unmeasured, without_marks
from server.result import Result

_BEST = 2  # column


def print_summary(result: Result, report: Path | None, console: Console) -> None:
    """Print to a console on stderr; `report` is named if it was written."""
    if not console.is_terminal:
        for line in summary_lines(result, report):
            console.print(Text(line), soft_wrap=True)
        return
    console.print(_table(result))
    facts = _facts(result, report)
    for name, value in facts:
        fact = Text(f"{name:<{_width(facts)}} ", "dim")
        for number, part in enumerate(value.split(COMMAND_MARK)):
            fact.append(part, "not dim bold" if number % 2 else "not dim")
        console.print(fact, soft_wrap=True)


def _table(result: Result) -> Table | Text:
    """Return the title with the table of metrics, or alone if the result has none."""
    header, *rows = _grid(result)
    if not rows:
        return Text(_title(result), "bold")
    table = Table(
        box=HORIZONTALS, title=_title(result), title_justify="left", title_style="bold", show_edge=False, pad_edge=False
    )
    for i, column in enumerate(header):
        column = column.replace(" on ", " on\n").replace(" data (", " data\n(")
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(row[0], Text(row[1], "bold"), *row[2:])
    return table


def summary_lines(result: Result, report: Path | None) -> list[str]:
    """Return the summary as aligned plain text."""
    rows = _grid(result) if brief(result.metrics, result.task) else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    facts = _facts(result, report)
    return [_title(result), *lines, *(f"{name:<{_width(facts)}} {without_marks(value)}" for name, value in facts)]


def spread(result: Result, m: MetricSpec) -> tuple[float, float, float] | None:
    """Return minimum, median and maximum of a metric over the clients that have it."""
    values = [client.metrics.get(m.key, math.nan) for client in result.clients.values()]
    values = [value for value in values if not math.isnan(value)]
    return (min(values), median(values), max(values)) if values else None


def _title(result: Result) -> str:
    what = f"{result.method} on {result.task} · model {result.model} · {result.status}"
    clients = count(len(result.clients), "client")
    return f"{what} · {result.rounds_done}/{result.rounds} rounds · {clients}"


def _grid(result: Result) -> list[Sequence[str]]:
    """Return header and rows; the column of the best round is omitted if there is none."""
    rows = [_header(result), *(_row(result, m) for m in brief(result.metrics, result.task))]
    return rows if result.best else [(*row[:_BEST], *row[_BEST + 1 :]) for row in rows]


def _header(result: Result) -> Sequence[str]:
    of = f" on {result.best.split} data" if result.best and result.best.split else ""
    best = f"best{of} (round {result.best.round})" if result.best else ""
    return ("metric", "final", best, "clients min", "median", "max")


def _row(result: Result, m: MetricSpec) -> Sequence[str]:
    label = f"{m.label} {ARROW[m.better]}" if m.better else m.label
    best = result.best.metrics.get(m.key) if result.best else None
    over_clients = spread(result, m) or (None, None, None)
    return (
        label,
        format_value(m, result.metrics[m.key]),
        format_value(m, best),
        *(format_value(m, value) for value in over_clients),
    )


def _facts(result: Result, report: Path | None) -> list[tuple[str, str]]:
    claim, terms = statement_of(result)
    facts = {
        "note" if result.status == "completed" else "reason": result.reason,
        "metrics": unmeasured(result),
        "metrics here": local_metrics(result),
        "verdict": result.verdict.text if result.verdict else "",
        "measured": measured_by(result),
        "time": duration(result.seconds),
        "network": f"{size(result.bytes_down)} to the clients, {size(result.bytes_up)} from them",
        "privacy": claim,
        **{heading: "; ".join(parts) for heading, parts in terms.items()},
        "model": f"sha256 {result.model_sha256[:16]}…" if result.model_sha256 else "",
        "report": str(report or ""),
    }
    return [(name, value) for name, value in facts.items() if value]


def _width(facts: list[tuple[str, str]]) -> int:
    return max(8, *(len(name) for name, _ in facts))
