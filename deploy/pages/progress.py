"""Progress of a run: follow its metrics.jsonl and print a line per round, with a bar on a terminal."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

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
from rich.text import Text

from common.errors import DataError
from common.text import printable
from deploy.pages.metrics import format_value, headlines, is_error, measure
from deploy.pages.text import cost, duration, first_line, size
from server.clients.roster import REVOKED
from server.record.events import Event, Finish, Refusal, Round, Start, Sum, Waiting, event_from_line

POLL_SECONDS = 0.1  # seconds
MAX_METRICS = 4  # in one line
MAX_NAMES = 8  # of clients, in one line


def follow(
    path: Path,
    start: int = 0,
    going_on: Callable[[], bool] = lambda: True,
    sleep: Callable[[float], None] = time.sleep,
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


def round_line(event: Round, start: Start | None = None) -> Text:
    """Return a round's line, such as `round  12/100 · train loss 0.213  auc 0.984   0.42 s  4/4 clients`.

    Traffic follows, and lost clients stand in parentheses: `3/4 clients (client-3 gone since round 9)  ↓412 kB ↑410 kB`.
    With noise clients report no loss: `round  12/100 · rmse 0.187  ρ 0.557, 65 % left  …`. If rounds are evaluated on
    validation data and the last on test data: `round   2/3 · train loss 0.095  validation: mse 0.0400  …`.

    Args:
        event: The round.
        start: Start of its run, if available.
    """
    width, spent = len(str(event.rounds)), event.server.get("cost", 0.0)
    line = Text(f"round {event.round:{width}}/{event.rounds} ·")
    if not spent and (start is None or is_error(start.task, start.model)):
        line.append(f" train loss {format_value(measure('loss'), event.loss)} ")
    line.append(f" {event.split}:" if event.split else "", "cyan")
    for m in headlines(event.metrics.keys() - {"loss"})[:MAX_METRICS]:
        line.append(f" {m.short} ").append(f"{format_value(m, event.metrics[m.key])} ", "bold")
    if spent:
        line.append(f" {cost(start.account if start else '', spent)}, {100 * event.server['left']:.0f} % left ", "cyan")

    line.append(f"  {duration(event.seconds)}  ")
    line.append(f"{event.answered}/{event.asked} clients", "" if event.answered == event.asked else "yellow")
    line.append(_absences(event), "yellow")
    line.append(f"  ↓{size(event.bytes_down)} ↑{size(event.bytes_up)}", "dim")
    return line


def waiting_line(event: Waiting) -> Text:
    """Return the line of a wait, such as `waiting for clients: 1 connected, 2 required (shop-3)`."""
    names = [printable(name, 80) for name in event.online]
    online = ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
    line = Text(f"waiting for clients: {len(names)} connected, {event.wanted} required", "yellow")
    return line.append(f" ({online})" if online else "", "dim")


def _absences(event: Round) -> str:
    """Return clients whose reply does not count, or not in full, in parentheses; empty if there is none."""
    lost = [_absence(event, name) for name in event.missing]
    reasons = [*event.refused.items(), *event.shortened.items()]
    lost += [f"{printable(name, 80)}: {_short(reason)}" for name, reason in reasons]
    further = f"; and {len(lost) - MAX_NAMES} more" if len(lost) > MAX_NAMES else ""
    return f" ({'; '.join(lost[:MAX_NAMES])}{further})" if lost else ""


def _absence(event: Round, name: str) -> str:
    since = event.gone.get(name, event.round)
    what = f" gone since round {since}" if since < event.round else ": no answer"
    return printable(name, 80) + what


def _short(reason: str) -> str:
    """Return a reason, or the word for a revoked key: the line of its refusal has the rest."""
    return "revoked" if REVOKED in reason else first_line(reason)


def _whole_lines(path: Path, place: int) -> list[bytes]:
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(place)
        return [line for line in file if line.endswith(b"\n")]


def _print(events: Iterable[Event], console: Console, advance: Callable[[Event], None]) -> Finish | None:
    done, finish, start, waiting = 0, None, None, ""
    for event in events:
        match event:
            case Start():
                line, start = _start_line(event), event
            case Round():
                line, done = round_line(event, start), event.round
            case Finish():
                line, finish = _finish_line(event, done), event
            case Waiting():
                line = waiting_line(event)
                if line.plain == waiting:
                    continue
            case Refusal():
                line = Text(f"refused {printable(event.client, 80)}: {first_line(event.reason, 400)}", "yellow")
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
        elif isinstance(event, Round):
            tasks[:] = tasks or [progress.add_task("training", total=event.rounds)]
            progress.update(tasks[-1], completed=event.round, total=event.rounds)

    return advance


def _start_line(event: Start) -> Text:
    line = Text(f"{event.method} on {event.task}", "bold")
    line.append(f" · model {event.model} · {event.rounds} rounds · seed {event.seed} · run {event.run}", "not bold dim")
    return line.append(f"\nremark: {first_line(event.remark, 400)}", "not bold yellow") if event.remark else line


def _finish_line(event: Finish, done: int) -> Text:
    if event.status == "completed":
        reason = f" · {first_line(event.reason, 400)}" if event.reason else ""
        return Text(f"completed after {done} rounds", "green").append(reason, "default")
    return Text(f"failed after {done} rounds: {first_line(event.reason, 400)}", "bold red")
