"""A `fedloom up` of the benchmark: its processes, its round lines, and its restart after a kill."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from client.owner.journal import read_journal
from deploy.federation.fork_server import flower_environment
from deploy.superlink.superlink import free_port
from server.record.process import FOLDER as RECORDS
from server.record.process import read_records

RUN = "faults"
WAIT_SECONDS = 600.0  # seconds until a run that does not go on counts as lost
POLL_SECONDS = 0.05
MARK = "FEDLOOM_FAULTS_FOLDER"
"""Variable of the environment of all processes of a run, whose value is its folder."""


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
    restarts: int = 0
    prefix: tuple[str, ...] = ()
    """Command before its modules, which enters a network namespace."""

    @property
    def private(self) -> Path:
        """Folder of the server's files, and of a folder for each client."""
        return self.folder / ".fedloom" / "up" / RUN

    def words(self, *, resume: bool) -> tuple[str, ...]:
        """Return the command, or the one that goes on after it was killed."""
        run = ("--resume", RUN) if resume else (*self.options, "--run-id", RUN)
        return "up", *run, "--no-alone", *self.ports, "--json"

    def start(self) -> None:
        """Start the command."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command = self.run_command(*self.words(resume=False))

    def restart(self) -> None:
        """Start the command again, as a service manager does."""
        self.restarts += 1
        self.command = self.run_command(*self.words(resume=True))

    def run_command(self, *words: str | Path) -> psutil.Popen:
        """Return a running command of fedloom."""
        return self.run_module("deploy.cli", *words)

    def run_module(self, module: str, *words: str | Path, **variables: str) -> psutil.Popen:
        """Return a running module, whose environment has these variables too."""
        own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd()), MARK: str(self.folder), **variables}
        environment = flower_environment(own)
        if not variables:
            environment.pop("FEDLOOM_RUNS", None)
        with (self.folder / "output").open("ab") as output:
            program = [*self.prefix, sys.executable, "-m", module, *map(str, words)]
            return psutil.Popen(program, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def family(self) -> set[psutil.Process]:
        """Return all processes of this run, also those that no longer have their parent."""
        return {process for process in psutil.process_iter() if _has_mark(process, str(self.folder))}

    def find(self, name: str) -> list[psutil.Process]:
        """Return the processes of which the recorded name begins so, newest last."""
        records = read_records(self.private / "server" / RECORDS)
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
        """Return the number of noised replies that clients made, and of those that their ledgers lack.

        Clients made what the server used, and what their journals have.
        """
        made = {(name, e["round"]) for e in self.rounds() for name in e["clients"] if name not in e["missing"]}
        for folder in self.private.glob("*/state"):
            replies = [entry for entry in read_journal(folder) if entry.get("noised") and entry["run"] == RUN]
            made |= {(reply["client"], reply["round"]) for reply in replies if reply["asked"] == "train"}
        recorded: set[tuple[str, int]] = set()
        for path in self.private.glob("*/state/lineages/*.fedloom-ledger"):
            with closing(sqlite3.connect(path)) as ledger:
                rows = ledger.execute("SELECT run, round FROM releases").fetchall()
            recorded |= {(path.parents[2].name, number) for run, number in rows if run.split()[0] == RUN}
        return len(made), len(made - recorded)

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


def _has_mark(process: psutil.Process, folder: str) -> bool:
    try:
        return process.environ().get(MARK) == folder and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
