"""A `fedloom up` of the benchmark: its processes, its round lines, and its restart after a kill."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from deploy.flower_programs import flower_environment
from deploy.ports import free_port
from server.process_records import FOLDER as RECORDS
from server.process_records import read_records

RUN = "faults"
WAIT_SECONDS = 600.0  # seconds until a run that does not go on counts as lost
POLL_SECONDS = 0.05


class StuckError(Exception):
    """Run that does not go on."""


@dataclass
class Federation:
    """Run of `fedloom up` in a folder of its own.

    Args:
        folder: The folder.
        options: Options of `up` that describe the run.
    """

    folder: Path
    options: tuple[str, ...]
    ports: tuple[str, ...] = field(
        default_factory=lambda: ("--port", str(free_port()), "--control-port", str(free_port()))
    )
    seen: set[psutil.Process] = field(default_factory=set)

    def start(self, *, resume: bool = False) -> None:
        """Start the command, or start it again after it was killed."""
        words = ("--resume", RUN, "--no-alone") if resume else (*self.options, "--run-id", RUN)
        program = [sys.executable, "-m", "deploy.cli", "up", *words, *self.ports, "--json"]
        environment = flower_environment({"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())})
        environment.pop("FEDLOOM_RUNS", None)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output").open("ab") as output:
            self.command = psutil.Popen(
                program, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def family(self) -> set[psutil.Process]:
        """Return all processes that were started so far and still run."""
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.command.pid)
            self.seen |= {root, *root.children(recursive=True)}
        return {process for process in self.seen if _runs(process)}

    def find(self, name: str) -> list[psutil.Process]:
        """Return the processes of which the recorded name begins so, newest last."""
        records = read_records(self.folder / ".fedloom" / "up" / RUN / "server" / RECORDS)
        return [process for one in records if one.name.startswith(name) and (process := one.find())]

    def rounds(self) -> list[dict[str, Any]]:
        """Return the round lines so far."""
        path = self.folder / "runs" / RUN / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        events = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [event for event in events if event["event"] == "round"]

    def has_rounds(self, number: int) -> bool:
        """Return True if there are at least so many round lines."""
        return len(self.rounds()) >= number

    def wait(self, is_reached: Callable[[], bool]) -> None:
        """Wait for a condition.

        Raises:
            StuckError: It was not reached in time.
        """
        end = time.monotonic() + WAIT_SECONDS
        while not is_reached():
            if time.monotonic() > end:
                raise StuckError((self.folder / "output").read_text()[-2_000:])
            time.sleep(POLL_SECONDS)

    def result(self) -> dict[str, Any]:
        """Return the result of the run; empty if it has none."""
        path = self.folder / "runs" / RUN / "result.json"
        found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
        return found

    def releases(self) -> tuple[int, int]:
        """Return the number of noised replies that the server used, and of those that no client's ledger has."""
        used = {(name, e["round"]) for e in self.rounds() for name, c in e["clients"].items() if c["bytes_up"]}
        recorded: set[tuple[str, int]] = set()
        for path in (self.folder / ".fedloom" / "up" / RUN).glob("*/state/lineages/*.fedloom-ledger"):
            with closing(sqlite3.connect(path)) as ledger:
                rows = ledger.execute("SELECT round FROM releases WHERE run = ?", (RUN,)).fetchall()
            recorded |= {(path.parents[2].name, number) for (number,) in rows}
        return len(used), len(used - recorded)

    def close(self) -> int:
        """End what still runs; return the number of processes that had outlived their command."""
        if self.command.poll() is not None:
            time.sleep(1.0)
            left = len(self.family())
        else:
            left = 0
        for process in self.family():
            process.kill()
        return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
