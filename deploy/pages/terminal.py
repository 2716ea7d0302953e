"""Runs on a terminal: summary of a result, tables, JSON and comparison of stored runs."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.box import HORIZONTALS
from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.metrics import MetricSpec
from common.text import count, printable
from deploy.cli.output import say
from deploy.pages.comparison import Paired, compare_runs, find_mismatches, pair
from deploy.pages.metrics import brief, format_value, in_order, local_metrics
from deploy.pages.text import COMMAND_MARK, duration, measured_by, size, statement_of, unmeasured, without_marks
from deploy.pages.view import ARROW, RunRecord, read
from server.record.folder import RunDirectory
from server.record.result import Result, result_to_json

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


LONGEST = 3000
"""Maximum length of a line, in characters."""

SHOWN_METRICS = 2
"""Number of metrics in a line of the list."""


def status_of(run: RunDirectory, record: RunRecord) -> str:
    """Return `completed`, `failed`, `running` or `stopped`."""
    if record.status != "unfinished":
        return record.status
    return "stopped" if run.is_idle() else "running"


def print_runs(records: Sequence[tuple[RunDirectory, RunRecord]]) -> None:
    """Print a line a run; names are whole, to be copied."""
    header = ("run", "method on task", "status", "rounds", "ε", "started", "metrics")
    for line in _align([header, *(tuple(_cells(run, record)) for run, record in records)]):
        say(line)


def _align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _cells(run: RunDirectory, record: RunRecord) -> Iterator[str]:
    yield record.run
    yield printable(record.title)
    yield status_of(run, record)
    yield f"{record.rounds[-1].round if record.rounds else 0}/{record.config.get('rounds', '?')}"
    yield f"{record.config.get('privacy.epsilon', 0):g}" if record.noisy else "–"
    yield time.strftime("%Y-%m-%d %H:%M", time.localtime(record.started)) if record.started else "–"
    specs = [m for m in brief(record.final, record.task) if m.headline and not m.baseline][:SHOWN_METRICS]
    yield ", ".join(f"{m.label} {format_value(m, record.final[m.key])}" for m in specs)


def as_json(run: RunDirectory, record: RunRecord) -> dict[str, Any]:
    """Return a run as a JSON object, with its result if it has one."""
    return {
        "run": record.run,
        "folder": str(run.path),
        "task": record.task,
        "method": record.config.get("method"),
        "seed": record.config.get("seed"),
        "status": status_of(run, record),
        "rounds_done": record.rounds[-1].round if record.rounds else 0,
        "rounds": record.config.get("rounds"),
        "started": record.started,
        "metrics": {key: value if math.isfinite(value) else None for key, value in record.final.items()},
        "result": json.loads(result_to_json(record.result)) if record.result else None,
    }


def describe(run: RunDirectory, record: RunRecord) -> Iterator[str]:
    """Iterate over the lines about a run."""
    report = run.path / "report.html"
    if record.result:
        lines = summary_lines(record.result, report if report.exists() else None)
        yield f"run {record.run}"
        yield from (printable(line, LONGEST) for line in lines)
    else:
        name, method, status, rounds, _, _, metrics = _cells(run, record)
        yield f"run {name}"
        yield " · ".join(filter(None, (method, status, f"{rounds} rounds", metrics)))
    yield f"folder   {run.path}"


def print_comparison(folders: Sequence[Path]) -> None:
    """Print a row a metric: each run's value, and the paired difference of each further run to the first."""
    records, mismatches = [read(path) for path in folders], find_mismatches(folders)
    rows = [("", *(record.run for record in records))]
    for row in compare_runs(records):
        cells = (f"{cell['text']} *" if cell["best"] and not mismatches else cell["text"] for cell in row["cells"])
        rows.append((f"{row['label']} {row['arrow']}".rstrip(), *cells))
    for line in _align(rows):
        say(line)
    if mismatches:
        say(f"no best value is marked, and no difference shown: the runs differ in {' and '.join(mismatches)}")
        return
    for line in ("* best value", *_difference_lines(records)):
        say(line)


def _difference_lines(records: Sequence[RunRecord]) -> Iterator[str]:
    first, *others = records
    for other in others:
        pairs = list(paired_metrics(first, other))
        if pairs:
            yield f"{other.run} minus {first.run}, {count(max(p.clients for _, _, p in pairs), 'client')} in both:"
        for label, digits, p in pairs:
            se = f" ± {p.se:.{digits}f}" if math.isfinite(p.se) else ""
            yield f"  {label} {p.mean:+.{digits}f}{se}{'' if p.is_clear else ' (no clear difference)'}"


def paired_metrics(first: RunRecord, other: RunRecord) -> Iterator[tuple[str, int, Paired]]:
    """Iterate over label, digits and paired difference of the metrics in short tables."""
    if not first.result or not other.result:
        return
    for m in brief(first.final, first.task):
        if not m.baseline and (p := pair(m, first.result, other.result)):
            yield m.label, m.digits, p


def comparison_as_json(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the metrics of the runs, paired differences to the first, and what makes them incomparable."""
    records = [read(path) for path in folders]
    first = records[0]
    mismatches = find_mismatches(folders)
    differences = {
        other.run: {
            m.key: {"mean": p.mean, "se": p.se if math.isfinite(p.se) else None, "clients": p.clients}
            for m in in_order(first.final)
            if first.result and other.result and (p := pair(m, first.result, other.result))
        }
        for other in records[1:]
        if not mismatches
    }
    metrics = {r.run: {key: value if math.isfinite(value) else None for key, value in r.final.items()} for r in records}
    return {"metrics": metrics, "differences": differences, "mismatches": mismatches}
