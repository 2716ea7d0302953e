"""The `fedloom` command as a process in its own folder, observed by its output and its files."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest
from typer.testing import CliRunner

from deploy.cli import main
from deploy.cli.app import app
from deploy.federation.fork_server import flower_environment
from deploy.superlink.superlink import free_port, require_free_port

ROOT = Path(__file__).parents[2]
NETWORK = ("--method", "fedrule")
"""Method that trains for many rounds."""

PATIENCE = 180.0  # seconds; two busy cores need 40 s for 10 s of work on an idle machine


def until(is_true: Callable[[], bool], message: Callable[[], str], seconds: float = PATIENCE) -> None:
    """Wait for a condition; fail with the message after a time limit."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, message()
        time.sleep(0.1)


@dataclass
class Command:
    """Running command and the files of its output."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    seen: set[psutil.Process] = field(default_factory=set)

    def wait_for(self, text: str) -> None:
        """Wait until stderr contains the text."""
        until(lambda: text in self.error() or self.process.poll() is not None, self.error)
        assert text in self.error(), self.error()
        self.family()

    def family(self) -> set[psutil.Process]:
        """Return its process and all that it started, including those that detached since the last call."""
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            self.seen |= {parent, *parent.children(recursive=True)}
        return self.seen

    def end(self, number: signal.Signals | None = None) -> int:
        """Wait for its end, after a signal if one is given; return the exit status."""
        self.family()
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def error(self) -> str:
        return self.err.read_text()

    def peaks_of_clients(self) -> dict[int, float]:
        """Return the largest observed RSS in MB of each client process; wait for the end of the command.

        A child of a client has the client's name and memory until it runs its own program; it is not counted.
        """
        peaks: dict[int, float] = {}
        while self.process.poll() is None:
            for process in self.family():
                with suppress(psutil.Error):
                    if is_client(process.pid) and not is_client(process.ppid()):
                        megabytes = process.memory_info().rss / 2**20
                        peaks[process.pid] = max(peaks.get(process.pid, 0.0), megabytes)
            time.sleep(0.1)
        print(f"{max(peaks.values()):.0f} MB at most in {len(peaks)} clients")
        return peaks

    def left_behind(self) -> list[psutil.Process]:
        """Return processes that are still running after its end."""
        return [p for p in self.seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def result(self) -> dict[str, Any]:
        """Return the last line of stdout, decoded from JSON."""
        parsed: dict[str, Any] = json.loads(self.out.read_text().splitlines()[-1])
        return parsed


def is_client(pid: int) -> bool:
    """Return True if a process has the name of a client."""
    return psutil.Process(pid).name().startswith("client-")


@dataclass(frozen=True)
class Printed:
    """Output of a finished command."""

    out: str
    error: str


class Desk:
    """Folder and ports of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.control_port = folder, free_port(), free_port()
        self.commands: list[Command] = []
        self.packages: list[Path] = []

    def start(self, *arguments: str | Path, prefix: tuple[str, ...] = (), folder: Path | None = None) -> Command:
        """Run `fedloom` with these arguments."""
        return self.program([*prefix, sys.executable, "-m", "deploy.cli", *map(str, arguments)], folder or self.folder)

    def finish(self, *words: str | Path, folder: Path | None = None, code: int = 0) -> Printed:
        """Run a short command in the process of the test; check its exit code."""
        out, err, where = io.StringIO(), io.StringIO(), folder or self.folder
        where.mkdir(parents=True, exist_ok=True)
        environment = {key: value for key, value in os.environ.items() if key != "FEDLOOM_RUNS"} | {"COLUMNS": "200"}
        mask = os.umask(0o022)  # as in a shell; the command closes its files itself
        try:
            with (
                chdir(where),
                patch.dict(os.environ, environment, clear=True),
                patch.object(sys, "argv", ["fedloom", *map(str, words)]),
                redirect_stdout(out),
                redirect_stderr(err),
                pytest.raises(SystemExit) as ended,
            ):
                main()
        finally:
            os.umask(mask)
        assert int(ended.value.code or 0) == code, err.getvalue()
        return Printed(out.getvalue(), err.getvalue())

    def program(self, words: list[str], folder: Path) -> Command:
        """Run a program."""
        folder.mkdir(parents=True, exist_ok=True)
        number = len(self.commands)
        out, err = (self.folder / f"{number}.{stream}" for stream in ("out", "err"))
        path = os.pathsep.join(map(str, [ROOT, *self.packages]))
        variables = {"PYTHONPATH": path, "COLUMNS": "200", "OMP_NUM_THREADS": "1", "FLWR_HOME": str(folder / ".flwr")}
        environment = flower_environment(variables)
        environment.pop("FEDLOOM_RUNS", None)
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(words, cwd=folder, env=environment, stdout=stdout, stderr=stderr)
        self.commands.append(Command(process, out, err))
        return self.commands[-1]

    def up(self, *arguments: str | Path) -> Command:
        """Run `fedloom up` on this desk's ports."""
        ports = ("--port", str(self.port), "--control-port", str(self.control_port))
        return self.start("up", *arguments, *ports, "--json")

    def simulate(self, *arguments: str | Path) -> dict[str, Any]:
        """Run `fedloom simulate` in the process of the test; return its result."""
        words = ["simulate", *map(str, arguments), "--together", "1", "--no-alone", "--run-id", "simulated", "--json"]
        with chdir(self.folder):
            done = CliRunner(env={"FEDLOOM_RUNS": None}).invoke(app, words)
        assert done.exit_code == 0, (done.output, done.exception)
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    def require_clean(self, command: Command) -> None:
        """Check that no process of the command is left and its ports are free."""
        assert command.left_behind() == []
        require_free_port("127.0.0.1", self.port, "--port")
        require_free_port("127.0.0.1", self.control_port, "--control-port")

    def rounds(self, run: str, folder: Path | None = None) -> list[dict[str, Any]]:
        """Return the round events of a run."""
        path = (folder or self.folder) / "runs" / run / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["event"] == "round"]
