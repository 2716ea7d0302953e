"""Runs on a terminal: progress, summary of a result, tables, JSON and comparison of stored runs."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.box import HORIZONTALS
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from common.errors import DataError
from common.metrics import MetricSpec
from common.text import MAX_NAMES, by_reason, count, few, printable, size
from deploy.cli.output import aligned, say
from deploy.pages import view
from deploy.pages.statement import describe_parent, statement_of
from deploy.pages.view import COMMAND_MARK, RunRecord, brief, duration, first_line, format_value, headlines
from server.clients.roster import REVOKED
from server.record.events import Event, Finish, Refusal, RoundEvent, Start, Sum, Waiting, event_from_line
from server.record.result import Result, result_to_json

POLL_SECONDS = 0.1  # seconds
MAX_METRICS = 4  # in one line


def follow(
    path: Path, start: int = 0, going_on: Callable[[], bool] = lambda: True, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Event]:
    """Yield the events of a run as they are written, up to its finish.

    Args:
        path: File metrics.jsonl, which may not exist yet.
        start: Bytes to skip: earlier events of a resumed run.
        going_on: Function that returns False once nothing is written any more; remaining events are then read.
        sleep: Function that waits between two reads.
    """
    position = start
    while True:
        last_look = not going_on()
        for line in _whole_lines(path, position):
            position += len(line)
            try:
                event = event_from_line(line)
            except DataError:
                continue  # torn by a crash before a resume
            yield event
            if isinstance(event, Finish):
                return
        if last_look:
            return
        sleep(POLL_SECONDS)


def show(events: Iterable[Event], console: Console) -> Finish | None:
    """Print the events as they arrive; return the finish, or None if the run ended without one.

    Pass a console on stderr: stdout belongs to `--json`.
    """
    if not console.is_terminal:
        return _print(events, console, lambda event: None)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        return _print(events, console, _bar(progress))


def round_line(event: RoundEvent, start: Start | None = None) -> Text:
    """Return a round's line, such as `round  12/100 · train loss 0.213  auc 0.984   0.42 s  4/4 clients`.

    Traffic follows, and lost clients stand in parentheses: `3/4 clients (client-3 gone since round 9)  ↓412 kB ↑410 kB`.
    Without training, or with noise, clients report no loss: `round  12/100 · rmse 0.187  privacy budget 65 % left  …`. If
    rounds are evaluated on validation data and the last on test data: `round 2/3 · train loss 0.095  validation: mse 0.040  …`.

    Args:
        event: The round.
        start: Start of its run, if available.
    """
    width, spent = len(str(event.rounds)), event.server.get("cost", 0.0)
    line = Text(f"round {event.round:{width}}/{event.rounds} ·")
    if not spent and not math.isnan(event.loss) and (start is None or view.is_error(start.task, start.model)):
        line.append(f" train loss {format_value(view.measure('loss'), event.loss)} ")
    line.append(f" {event.split}:" if event.split else "", "cyan")
    first = view.objective_of(start.task) if start else ""
    for m in headlines(event.metrics.keys() - {"loss"}, first=first)[:MAX_METRICS]:
        line.append(f" {m.short} ").append(f"{format_value(m, event.metrics[m.key])} ", "bold")
    if spent:
        line.append(f" privacy budget {100 * event.server['left']:.0f} % left ", "cyan")

    line.append(f"  {duration(event.seconds)}  ")
    line.append(f"{event.answered}/{event.asked} clients", "" if event.answered == event.asked else "yellow")
    line.append(_absences(event), "yellow")
    line.append(f"  ↓{size(event.bytes_down)} ↑{size(event.bytes_up)}", "dim")
    return line


def waiting_line(event: Waiting) -> Text:
    """Return the line of a wait, such as `waiting for clients: 1 connected, 2 required (shop-3)`.

    Clients that refuse are counted by their reasons.
    """
    if event.disk:
        return Text(f"{event.disk}; waiting for room", "yellow")
    names = [printable(name, 80) for name in event.online]
    online = few(names)
    here = f"{len(names)} connected"
    if event.refused:
        here = f"{len(names) - sum(event.refused.values())} take part"
    line = Text(f"waiting for clients: {here}, {event.wanted} required", "yellow")
    for reason, number in event.refused.items():
        line.append(f"; {number} refused: {first_line(reason, 400)}")
    return line.append(f" ({online})" if online else "", "dim")


def _absences(event: RoundEvent) -> str:
    """Return clients whose reply does not count, or not in full, in parentheses; empty if there is none."""
    since = {name: event.gone.get(name, event.round) for name in event.missing}
    lost = [
        printable(name, 80) + (f" gone since round {first}" if first < event.round else ": no answer")
        for name, first in since.items()
    ]
    reasons = [*event.refused.items(), *event.shortened.items()]
    lost += by_reason((name, "revoked" if REVOKED in why else first_line(why)) for name, why in reasons)
    further = f"; and {len(lost) - MAX_NAMES} more" if len(lost) > MAX_NAMES else ""
    return f" ({'; '.join(lost[:MAX_NAMES])}{further})" if lost else ""


def _whole_lines(path: Path, offset: int) -> list[bytes]:
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(offset)
        return [line for line in file if line.endswith(b"\n")]


def _print(events: Iterable[Event], console: Console, advance: Callable[[Event], None]) -> Finish | None:
    done, finish, start, waiting = 0, None, None, ""
    first, further = dict[str, str](), Counter[str]()
    for event in events:
        if not isinstance(event, Refusal):
            for reason, number in further.items():
                console.print(Text(f"refused for the reason of {first[reason]}: {number:,} more", "yellow"))
            further.clear()
        match event:
            case Start():
                start = event
                line = Text(f"{event.method} on {event.task}", "bold")
                about = f" · model {event.model} · {count(event.rounds, 'round')} · seed {event.seed} · run {event.run}"
                line.append(about, "not bold dim")
                line.append(f"\nremark: {first_line(event.remark, 400)}" if event.remark else "", "not bold yellow")
            case RoundEvent():
                line, done = round_line(event, start), event.round
            case Finish():
                finish = event
                outcome = f"{event.status} after {count(done, 'round')}"
                reason = first_line(event.reason, 400)
                if event.status == "completed":
                    line = Text(outcome, "green").append(f" · {reason}" if reason else "", "default")
                else:
                    line = Text(f"{outcome}: {reason}", "bold red")
            case Waiting():
                line = waiting_line(event)
                if line.plain == waiting:
                    continue
            case Refusal() if first.setdefault(event.reason, name := printable(event.client, 80)) != name:
                further[event.reason] += 1
                continue
            case Refusal():
                line = Text(f"refused {printable(event.client, 80)}: {first_line(event.reason, 1_000)}", "yellow")
            case Sum():
                continue
        waiting = line.plain
        console.print(line, soft_wrap=True)
        advance(event)
    return finish


def _bar(progress: Progress) -> Callable[[Event], None]:
    tasks: list[TaskID] = []

    def advance(event: Event) -> None:
        if isinstance(event, Start):
            tasks.append(progress.add_task(f"{event.method} on {event.task}", total=event.rounds))
        elif isinstance(event, RoundEvent):
            tasks[:] = tasks or [progress.add_task("training", total=event.rounds)]
            progress.update(tasks[-1], completed=event.round, total=event.rounds)

    return advance


def print_summary(result: Result, report: Path | None, console: Console) -> None:
    """Print to a console on stderr; `report` is named if it was written."""
    if not console.is_terminal:
        for line in summary_lines(result, report):
            console.print(Text(line), soft_wrap=True)
        return
    header, *rows = _grid(result) or [()]
    title = Text(_title(result), "bold")
    shown = Table(box=HORIZONTALS, title=title, title_justify="left", show_edge=False, pad_edge=False)
    for i, column in enumerate(header):
        column = column.replace(" on ", " on\n").replace(" data (", " data\n(")
        shown.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        shown.add_row(row[0], Text(row[1], "bold"), *row[2:])
    console.print(shown if rows else title)
    facts = _facts(result, report)
    for name, value in facts:
        fact = Text(f"{name:<{_width(facts)}} ", "dim")
        for number, part in enumerate(value.split(COMMAND_MARK)):
            fact.append(part, "not dim bold" if number % 2 else "not dim")
        console.print(fact, soft_wrap=True)


def summary_lines(result: Result, report: Path | None) -> list[str]:
    """Return the summary as aligned plain text."""
    facts = _facts(result, report)
    lines = (f"{name:<{_width(facts)}} {value.replace(COMMAND_MARK, '')}" for name, value in facts)
    return [_title(result), *aligned(_grid(result), str.rjust), *lines]


def spread(result: Result, m: MetricSpec) -> tuple[float | None, ...]:
    """Return minimum, median and maximum of a metric over the clients that have it; None without any."""
    values = view.values_of(result, m)
    return (min(values), median(values), max(values)) if values else (None,) * 3


def _title(result: Result) -> str:
    what = f"{result.method} on {result.task} · model {result.model} · {result.status}"
    clients = count(len(result.clients), "client")
    return f"{what} · {result.rounds_done}/{result.rounds} rounds · {clients}"


def _grid(result: Result) -> list[Sequence[str]]:
    """Return header and rows; empty without metrics.

    Earlier best round and clients have columns if there are any. A delivered round's has the test, as the verdict does.
    """
    best, measures = result.best, brief(result.metrics, result.task)
    if not measures:
        return []
    best = None if best and best.round == result.rounds_done and not best.split else best
    of_clients = ("clients min", "median", "max") if any(view.values_of(result, m) for m in measures) else ()
    split = f" on {best.split} data" if best and best.split else ""
    of_best = [f"round {best.round}, best{split}" if best.test else f"best{split} (round {best.round})"] if best else []
    rows: list[Sequence[str]] = [("metric", "final", *of_best, *of_clients)]
    for m in measures:
        of_round = [(best.test or best.metrics).get(m.key)] if best else []
        values = (result.metrics[m.key], *of_round, *(spread(result, m) if of_clients else ()))
        rows.append((f"{m.label} {view.ARROW[m.better]}".rstrip(), *(format_value(m, value) for value in values)))
    return rows


def _facts(result: Result, report: Path | None) -> list[tuple[str, str]]:
    claim, terms = statement_of(result)
    if report:  # it has every word
        terms = {name: tuple(one.partition(":")[0] for one in all_) for name, all_ in terms.items() if name != "terms"}
    facts = {
        "note" if result.status == "completed" else "reason": result.reason,
        "metrics": view.unmeasured(result),
        "metrics here": view.local_metrics(result),
        "verdict": result.verdict.text if result.verdict else "",
        "measured": view.measured_by(result),
        "started from": describe_parent(result.parent) if result.parent else "",
        "time": duration(result.seconds) + (f", clients trained on {result.device}" if result.device else ""),
        "network": f"{size(result.bytes_down)} to the clients, {size(result.bytes_up)} from them",
        "privacy": claim,
        **{heading: "; ".join(lines) for heading, lines in terms.items()},
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


def status_of(record: RunRecord) -> str:
    """Return `completed`, `failed`, `running` or `stopped`."""
    if record.status != "unfinished":
        return record.status
    return "stopped" if record.folder.is_idle() else "running"


def print_runs(records: Sequence[RunRecord]) -> None:
    """Print a line a run; names are whole, to be copied."""
    header = ("run", "method on task", "status", "rounds", "ε", "started", "metrics")
    for line in aligned([header, *(tuple(_cells(record)) for record in records)]):
        say(line)


def _cells(record: RunRecord) -> Iterator[str]:
    yield record.run
    yield printable(record.title)
    yield status_of(record)
    yield f"{record.rounds_done}/{record.config.get('rounds', '?')}"
    yield f"{record.epsilon or 0:g}" if record.noisy else "–"
    yield time.strftime("%Y-%m-%d %H:%M", time.localtime(record.started)) if record.started else "–"
    best = record.result.best if record.result else None
    final = (best and best.test) or record.final  # the test of a delivered round
    short = [m.key for m in brief(final, record.task)]
    specs = headlines(short, baselines=False, first=view.objective_of(record.task))[:SHOWN_METRICS]
    yield ", ".join(f"{m.label} {format_value(m, final[m.key])}" for m in specs)


def as_json(record: RunRecord) -> dict[str, Any]:
    """Return a run as a JSON object, with its result if it has one."""
    return {
        "run": record.run,
        "folder": str(record.folder.path),
        "task": record.task,
        "method": record.config.get("method"),
        "seed": record.config.get("seed"),
        "status": status_of(record),
        "rounds_done": record.rounds_done,
        "rounds": record.config.get("rounds"),
        "started": record.started,
        "metrics": view.finite(record.final),
        "result": json.loads(result_to_json(record.result)) if record.result else None,
    }


def describe(record: RunRecord) -> Iterator[str]:
    """Iterate over the lines about a run."""
    report = record.folder.path / "report.html"
    if record.result:
        lines = summary_lines(record.result, report if report.exists() else None)
        yield f"run {record.run}"
        yield from (printable(line, LONGEST) for line in lines)
    else:
        name, method, status, rounds, _, _, metrics = _cells(record)
        yield f"run {name}"
        yield " · ".join(filter(None, (method, status, f"{rounds} rounds", metrics)))
    yield f"folder   {record.folder.path}"


def print_comparison(folders: Sequence[Path]) -> None:
    """Print a row a metric: each run's value, and the paired difference of each further run to the first."""
    records = [view.read(path) for path in folders]
    mismatches = view.find_mismatches(records)
    rows = [("", *(record.run for record in records))]
    for row in view.compare_runs(records):
        cells = (f"{cell['text']} *" if cell["best"] and not mismatches else cell["text"] for cell in row["cells"])
        rows.append((f"{row['label']} {row['arrow']}".rstrip(), *cells))
    for line in aligned(rows):
        say(line)
    if mismatches:
        say(f"no best value is marked, and no difference shown: the runs differ in {' and '.join(mismatches)}")
        return
    say("* clearly the best value, by the differences of the clients")
    first, *others = records
    measures = [m for m in brief(first.final, first.task) if not m.baseline]
    for other in others:
        pairs = view.pairs(measures, first, other)
        if pairs:
            clients = count(max(p.clients for p in pairs.values()), "client")
            say(f"{other.run} minus {first.run}, {clients} in both, ± two standard errors:")
        for m, p in pairs.items():
            se = f" ± {2 * p.se:.{m.digits}f}" if math.isfinite(p.se) else ""
            say(f"  {m.label} {p.mean:+.{m.digits}f}{se}{'' if p.is_clear else ' (no clear difference)'}")


def comparison_as_json(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the metrics of the runs, paired differences to the first, and what makes them incomparable."""
    records = [view.read(path) for path in folders]
    first, mismatches = records[0], view.find_mismatches(records)
    differences = {
        other.run: {
            m.key: {"mean": p.mean, "se": p.se if math.isfinite(p.se) else None, "clients": p.clients}
            for m, p in view.pairs(view.in_order(first.final), first, other).items()
        }
        for other in ([] if mismatches else records[1:])
    }
    return {
        "metrics": {r.run: view.finite(r.final) for r in records},
        "differences": differences,
        "mismatches": mismatches,
    }
