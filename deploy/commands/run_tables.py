"""Tables and JSON of `fedloom runs`."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common.text import count, printable
from deploy.cli.output import say
from deploy.report.comparison import compare_runs
from deploy.report.differences import Paired, find_mismatches, pair
from deploy.report.metric_table import brief, format_value, in_order
from deploy.report.run import RunRecord, read
from deploy.summary import summary_lines
from server.artifacts import RunDirectory
from server.result import result_to_json

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
