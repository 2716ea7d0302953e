"""Federations of a working directory: their status, the order of each server, and their end."""

import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import psutil
import tomli_w

from common.config.keys import respell
from common.config.parse import flatten, parse
from common.config.run import RunConfig
from common.errors import ConfigError, RunError
from common.files import find_shortage
from deploy.files import write_file
from server.record.events import Finish, Refusal, RoundEvent, Start, Waiting
from server.record.folder import RunDirectory
from server.record.process import COMMAND, FOLDER, ProcessRecord, read_records, remove_ended

FILE = "order.toml"


def store_order(home: Path, config: RunConfig, port: int) -> None:
    """Write the order of a server to its folder."""
    order: Mapping[str, Any] = {"port": port, "config": flatten(config)}
    write_file(home / FILE, tomli_w.dumps(order).encode(), mode=0o600, overwrite=True)


def stored_order(home: Path) -> tuple[RunConfig, int] | None:
    """Return the newest run of a server and its port; None if it has served none.

    Raises:
        ConfigError: The file is damaged.
    """
    try:
        order = tomllib.loads((home / FILE).read_text("utf-8"))
        return parse(respell(order["config"])), int(order["port"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{home / FILE} cannot be read; remove it") from None


State = Literal["starting", "waiting", "training", "completed", "failed", "stopped"]


@dataclass(frozen=True)
class ServerStatus:
    """Status of one server and of its newest run.

    Args:
        home: Folder of the server.
        run: Name of the run.
        state: State of the run; `stopped` if it is unfinished and no process works on it.
        processes: Running processes of the federation.
        start: Start of the run; None before its clients have enrolled.
        last: Newest completed round.
        waiting: Wait for clients that is not over.
        finish: End of the run.
        absent: Names that are registered here and not connected while the run waits.
        disk: Shortage of room on a disk of the server now; empty if there is none.
    """

    home: str
    run: str
    state: State
    processes: tuple[ProcessRecord, ...] = ()
    start: Start | None = None
    last: RoundEvent | None = None
    waiting: Waiting | None = None
    finish: Finish | None = None
    absent: tuple[str, ...] = ()
    disk: str = ""


def read_servers(local: Path, runs: Path, home: Path | None = None) -> Iterator[ServerStatus]:
    """Yield the status of the server in `home`, or of those below `local` of `serve` and of running `up`."""
    for folder in [home] if home else find_servers(local):
        processes = read_records(folder / FOLDER)
        run = next((one.run for one in reversed(processes) if one.run), "") or _ordered_run(folder)
        if run:
            yield _read_server(folder, RunDirectory(runs, run), tuple(processes))


def _read_server(home: Path, run: RunDirectory, processes: tuple[ProcessRecord, ...]) -> ServerStatus:
    """Return the status by the newest event of each kind; a wait and a finish end with the next event."""
    status = ServerStatus(str(home), run.path.name, "stopped", processes)
    for event in run.events():
        if isinstance(event, Refusal):
            continue
        status = replace(
            status,
            waiting=event if isinstance(event, Waiting) else None,
            finish=event if isinstance(event, Finish) else None,
            start=event if isinstance(event, Start) else status.start,
            last=event if isinstance(event, RoundEvent) else status.last,
        )
    if status.finish:
        return replace(status, state=status.finish.status)
    if not processes:
        return replace(status, waiting=None)
    if shortage := find_shortage(home, run.path):
        return replace(status, state="waiting", waiting=None, disk=shortage)
    if status.waiting:
        return replace(status, state="waiting", absent=_absent(home, status.waiting))
    return replace(status, state="training" if status.start else "starting")


def _absent(home: Path, waiting: Waiting) -> tuple[str, ...]:
    from deploy.keys.nodes import list_nodes  # cryptography, only where it is needed

    names = (entry.name for entry in list_nodes(home / "nodes") if entry.state == "registered")
    return tuple(name for name in names if name and name not in waiting.online)


def _ordered_run(home: Path) -> str:
    """Return the newest run that `serve` stored in its folder; empty if there is none."""
    try:
        return str(tomllib.loads((home / FILE).read_text("utf-8"))["config"]["run-id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


COMMAND_SECONDS = 20.0
"""Seconds in which a command ends its own processes: twice their grace, and its report."""

GRACE_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL for processes without their command."""

POLL_SECONDS = 0.05


def find_servers(local: Path) -> list[Path]:
    """Return the folders of `serve`, `submit` and `up` below a working directory's private folder."""
    return [local / "server", local / "submit", *sorted(local.glob("up/*/server"))]


def stop_federation(home: Path) -> list[ProcessRecord]:
    """End all processes of the server's folder; return them, or an empty list if none runs.

    A command that still runs ends its processes itself. Of a killed command, the SuperLink, the ServerApp and the clients
    on this machine are ended here. A process that has the id of an ended one is left alone.

    Raises:
        RunError: A process belongs to another user, or does not end.
    """
    records = read_records(home / FOLDER)
    family = _with_descendants(records)
    _signal((process for record in records if record.name == COMMAND and (process := record.find())), "terminate")
    if any(record.name == COMMAND for record in records):
        _wait(family, COMMAND_SECONDS)
    _signal(_alive(family), "terminate")
    _wait(family, GRACE_SECONDS)
    _signal(_alive(family), "kill")
    _wait(family, GRACE_SECONDS)
    if left := _alive(family):
        raise RunError(f"process {min(process.pid for process in left)} does not end; see ps")
    remove_ended(home / FOLDER)
    return records


def _with_descendants(records: Iterable[ProcessRecord]) -> set[psutil.Process]:
    family: set[psutil.Process] = set()
    for record in records:
        if process := record.find():
            family.add(process)
            with suppress(psutil.NoSuchProcess):
                family.update(process.children(recursive=True))
    return family


def _signal(processes: Iterable[psutil.Process], action: str) -> None:
    for process in processes:
        try:
            getattr(process, action)()  # refuses a process id that another process has now
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            raise RunError(f"process {process.pid} belongs to another user; run fedloom stop as that user") from None


def _alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Return the processes that run; one that has ended may wait for its parent."""
    alive: set[psutil.Process] = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.add(process)
    return alive


def _wait(processes: Iterable[psutil.Process], seconds: float) -> None:
    end = time.monotonic() + seconds
    while _alive(processes) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
