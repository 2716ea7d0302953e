"""Records of a federation's processes in the server's folder, for `fedloom stop`."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from common.files import write_atomically

FOLDER = "processes"
"""Folder of the records in the server's folder."""

COMMAND = "fedloom"
"""Name of the command that started a federation; it ends all other processes when it ends."""

SAME_START_SECONDS = 1.0
"""Largest difference between two readings of one process's start."""


@dataclass(frozen=True)
class ProcessRecord:
    """Process of a federation.

    Args:
        name: Name for people.
        pid: Process id; the system gives it to another process later.
        started: Start of the process, seconds since 1970.
        run: Run that it works for; empty if unknown.
    """

    name: str
    pid: int
    started: float
    run: str = ""

    def find(self) -> psutil.Process | None:
        """Return the running process; None if it has ended, also if another one has its id now."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < SAME_START_SECONDS
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        return None


def record_process(folder: Path, name: str, pid: int | None = None, run: str = "") -> None:
    """Record a running process, this one by default, and remove the records of ended ones.

    A process that has ended and a folder that cannot be written leave no record.
    """
    with suppress(psutil.NoSuchProcess, OSError):
        process = psutil.Process(pid)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove_ended(folder)
        record = ProcessRecord(name, process.pid, process.create_time(), run)
        write_atomically(folder / f"{process.pid}.json", json.dumps(asdict(record)).encode(), mode=0o600)


def read_records(folder: Path) -> list[ProcessRecord]:
    """Return the records of processes that still run, oldest first."""
    running = [record for _, record in _read_all(folder) if record and record.find()]
    return sorted(running, key=lambda record: record.started)


def remove_ended(folder: Path) -> None:
    """Remove the records of ended processes, and those that cannot be read."""
    for path, record in _read_all(folder):
        if record is None or record.find() is None:
            path.unlink(missing_ok=True)


def _read_all(folder: Path) -> Iterator[tuple[Path, ProcessRecord | None]]:
    for path in folder.glob("*.json"):
        try:
            found = json.loads(path.read_bytes())
            record = ProcessRecord(str(found["name"]), int(found["pid"]), float(found["started"]), str(found["run"]))
        except (OSError, ValueError, KeyError, TypeError):
            record = None
        yield path, record if record and record.pid > 0 else None
