"""Watch of a submitted run to its end: progress, result, report, and resumption."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from common.errors import FedloomError, RunError
from common.files import find_shortage
from deploy.cli.options import LOCAL, DataRequest
from deploy.cli.output import await_room_in, describe_error, find_error_class, note, print_object
from deploy.federation.processes import Child, Processes
from deploy.federation.runs import runs_folder
from deploy.pages.terminal import follow, print_summary, show
from deploy.pages.view import first_line
from deploy.superlink.control import Control, Gate
from server.record.events import Event
from server.record.folder import RunDirectory
from server.record.result import Result, result_to_json

FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.1, 4.0, 30.0  # before another attempt
MAX_ATTEMPTS = 6  # attempts in a row without a new checkpoint


class LostRunError(RunError):
    """Run whose processes ended or no longer answer; it can go on from its checkpoint."""


def supervise(
    attempt: Callable[[bool], Result],
    folder: RunDirectory,
    console: Console,
    sleep: Callable[[float], None] = time.sleep,
    home: Path = LOCAL,
) -> Result:
    """Repeat attempts to train, with longer pauses after each fault in a row, until one has a result.

    The argument of an attempt is True if the run is to go on from its checkpoint. Faults on a full disk do not count.

    Raises:
        RunError: Too many attempts in a row were lost, or the first could not start; OSError from a file.
    """
    began, faults, newest = False, 0, _newest_checkpoint(folder)
    while True:
        before = newest
        try:
            return attempt(began)
        except (FedloomError, OSError) as fault:  # also one of the restart itself
            newest = _newest_checkpoint(folder)
            if find_shortage(folder.path, home):
                began = began or newest >= 0
                await_room_in(folder.path, home)
                continue
            if isinstance(fault, OSError) or (not began and not isinstance(fault, LostRunError)):
                raise
            began = began or newest >= 0
            faults = 1 if newest > before else faults + 1
            if faults >= MAX_ATTEMPTS:
                raise RunError(f"{fault}\ngiven up after {faults} attempts without progress") from fault
            what = first_line(str(fault)).partition(";")[0]
        pause = min(FIRST_PAUSE_SECONDS * PAUSE_GROWTH ** (faults - 1), MAX_PAUSE_SECONDS)
        text = f"{what}; the run goes on from round {max(newest, 0)} in {pause:g} s"
        console.print(text, style="yellow", markup=False, soft_wrap=True)
        sleep(pause)


def _newest_checkpoint(folder: RunDirectory) -> int:
    """Return the round of the newest checkpoint; -1 before the first."""
    return max(folder.checkpoints.rounds(), default=-1)


QUERY_SECONDS = 10.0  # seconds without events after which Flower is queried for the run's status
MAX_RESTARTS = 5  # of one killed client in one attempt
MAX_UNANSWERED = 3  # consecutive unanswered queries; a busy machine may fail to answer one
ROUND_LINE = b'{"event":"round"'  # start of the line of a round in metrics.jsonl


@dataclass
class Pulse:
    """Supervision of a federation while its run continues; calling it returns True until the run ends.

    Args:
        control: Control API of the SuperLink; queried only after a silence, since each query takes a second.
        run_id: Flower's number of the run.
        processes: Processes of this federation on this machine. After the first round only the server's is required.
        server: Process of the SuperLink, if it is one of them.
        metrics: Events of the run.
        start: Bytes of them from before.
        gate: Admission of clients whose keys appear later; None without it.
        console: Output of ended clients.
        server_app: Process of the run's ServerApp, if it is one of them.
    """

    control: Control
    run_id: int
    processes: Processes
    server: Child | None
    metrics: Path
    start: int
    gate: Gate | None
    console: Console
    server_app: Child | None = None
    size: int = -1
    heard: float = 0.0
    queried: float = 0.0
    unanswered: int = 0
    restarts: Counter[str] = field(default_factory=Counter)

    def __call__(self) -> bool:
        """Return True while the run continues.

        Raises:
            LostRunError: The server has ended or no longer answers.
            RunError: A client has ended before the first round was done.
        """
        if self.server_app is not None and self.server_app.process.poll() is not None:
            return False
        self._look_after_processes()
        if self.gate is not None:
            self.gate()
        size, now = self.metrics.stat().st_size if self.metrics.exists() else 0, time.monotonic()
        if size != self.size:
            self.size, self.heard = size, now
        if now - max(self.heard, self.queried) < QUERY_SECONDS:
            return True
        self.queried = now
        try:
            continues = not self.control.status(self.run_id).startswith("finished")
        except FedloomError as error:
            self.unanswered += 1
            if self.unanswered == MAX_UNANSWERED:
                raise LostRunError(str(error)) from None
            return True
        self.unanswered = 0
        return continues

    def _look_after_processes(self) -> None:
        if self.server is not None and self.server.process.poll() is not None:
            try:
                self.server.check()
            except RunError as error:
                raise LostRunError(str(error)) from None
        for child in self.processes.take_ended():
            line = f"{child.name} ended with exit code {child.process.returncode}"
            was_killed = (child.process.returncode or 0) < 0
            if (was_killed or find_shortage(self.metrics)) and self.restarts[child.name] < MAX_RESTARTS:
                self.restarts[child.name] += 1
                child.again()
                self._report(f"{line}; started again")
            elif self._under_way():
                self._report(f"{line}; the run continues without it")
            else:
                child.check()

    def _report(self, text: str) -> None:
        self.console.print(text, style="yellow", markup=False, soft_wrap=True)

    def _under_way(self) -> bool:
        """Return True if this run has completed a round."""
        if not self.metrics.exists():
            return False
        with self.metrics.open("rb") as events:
            events.seek(self.start)
            return any(line.startswith(ROUND_LINE) for line in events)


def watch(pulse: Pulse, folder: RunDirectory, start: int, after: Callable[[Result], Result]) -> Result:
    """Show the run's events after `start` as they are written, then its result.

    `after` may add to the result.

    Raises:
        LostRunError: The run ended without a result.
    """
    show(follow(pulse.metrics, start, pulse), pulse.console)
    result = folder.result()
    if result is None:
        log = pulse.server.log if pulse.server else "the SuperLink's log"
        raise LostRunError(f"the run ended without a result; see {log}")
    return conclude(after(result), folder, pulse.console)


def how_to_continue(folder: RunDirectory) -> str:
    """Return what to do after Ctrl-C: resume, or write the report if the run has ended just before."""
    name = folder.path.name
    over = (folder.path / "result.json").exists()
    return f"the run is over, write its report with fedloom report {name}" if over else f"resume with --resume {name}"


def watch_here(
    work: Callable[[], Result],
    folder: RunDirectory,
    console: Console,
    on_event: Callable[[Event], object] = lambda event: None,
    after: Callable[[Result], Result] = lambda result: result,
) -> Result:
    """Do the work in this thread while another thread shows the run's rounds, then show its result.

    `on_event` receives each event in the other thread, and `after` may add to the result once all are shown.
    """
    metrics = folder.path / "metrics.jsonl"
    start = metrics.stat().st_size if metrics.exists() else 0
    over = threading.Event()
    events = (on_event(event) or event for event in follow(metrics, start, lambda: not over.is_set()))
    display = threading.Thread(target=show, args=(events, console), daemon=True)
    display.start()
    try:
        result = work()
    except KeyboardInterrupt:
        console.print(f"\nstopped; resume with --resume {folder.path.name}", highlight=False, markup=False)
        raise
    finally:
        over.set()
        display.join()
    return conclude(after(result), folder, console)


def conclude(result: Result, folder: RunDirectory, console: Console) -> Result:
    """Write the result and the report, and print the result."""
    from deploy.pages.report import render  # matplotlib takes half a second

    if result != folder.result():
        folder.write_result(result)
    report: Path | None = folder.path / "report.html"
    try:
        render([folder.path], folder.path / "report.html")
    except (FedloomError, OSError) as error:  # the result is written in any case
        console.print(f"report not written ({describe_error(error)})", style="yellow", markup=False, soft_wrap=True)
        report = None
    print_summary(result, report, console)
    return result


def finish(
    result: Result, json_wanted: bool, source: DataRequest | None = None, *, examples: bool | None = None
) -> None:
    """Store examples of a run's answers, and print its result as JSON if wanted.

    Args:
        result: Result of the run.
        json_wanted: True for JSON.
        source: Data of this command; None if the data are at joining clients.
        examples: True for examples of own data too, False for those of generated data alone, None for none.

    Raises:
        FedloomError: The run failed; the class is that of the error that ended it.
    """
    if examples is not None:
        from deploy.pages.answers import add_examples

        add_examples(result, RunDirectory(runs_folder(), result.run), source, note, wants_own=examples)
    if json_wanted:
        print_object(json.loads(result_to_json(result)))
    if result.status != "completed":
        raise find_error_class(result.error)(f"the run failed: {result.reason}")
