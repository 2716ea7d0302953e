"""End of a federation by the records of its processes."""

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from common.errors import RunError
from server.record.process import COMMAND, FOLDER, ProcessRecord, read_records, remove_ended

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
