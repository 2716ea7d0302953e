"""The `fedloom` command as a person runs it: a process in a folder of its own, watched by what it prints and leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from deploy.processes import free_port, require_free_port
from deploy.superlink import flower_environment

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0  # seconds; two busy cores need 40 s for what an idle machine does in 10


def until(true: Callable[[], bool], what: Callable[[], str], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


@dataclass
class Command:
    """A running command and where its words go."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    seen: set[psutil.Process] = field(default_factory=set)

    def says(self, text: str) -> None:
        """Wait until stderr holds the text."""
        until(lambda: text in self.error() or self.process.poll() is not None, self.error)
        assert text in self.error(), self.error()
        self.family()

    def family(self) -> set[psutil.Process]:
        """Return the process and all that it started, also those that detached since the last call."""
        with suppress(psutil.NoSuchProcess):
            me = psutil.Process(self.process.pid)
            self.seen |= {me, *me.children(recursive=True)}
        return self.seen

    def end(self, number: signal.Signals | None = None) -> int:
        """Its exit status, after a signal where one is given."""
        self.family()
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def error(self) -> str:
        return self.err.read_text()

    def left_behind(self) -> list[psutil.Process]:
        """Return processes that outlived this one."""
        return [p for p in self.seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def result(self) -> dict[str, Any]:
        """Return the last line of stdout."""
        found: dict[str, Any] = json.loads(self.out.read_text().splitlines()[-1])
        return found


class Desk:
    """A folder to work in, and ports that are this test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.control_port = folder, free_port(), free_port()
        self.commands: list[Command] = []
        self.packages: list[Path] = []

    def start(self, *arguments: str | Path, prefix: tuple[str, ...] = (), folder: Path | None = None) -> Command:
        """Run `fedloom` with these arguments."""
        return self.program([*prefix, sys.executable, "-m", "deploy.cli", *map(str, arguments)], folder or self.folder)

    def program(self, words: list[str], folder: Path) -> Command:
        """Run a program."""
        folder.mkdir(parents=True, exist_ok=True)
        number = len(self.commands)
        out, err = (self.folder / f"{number}.{stream}" for stream in ("out", "err"))
        path = os.pathsep.join(map(str, [ROOT, *self.packages]))
        own = {"PYTHONPATH": path, "COLUMNS": "200", "OMP_NUM_THREADS": "1", "FLWR_HOME": str(folder / ".flwr")}
        environment = flower_environment(own)
        environment.pop("FEDLOOM_RUNS", None)
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(words, cwd=folder, env=environment, stdout=stdout, stderr=stderr)
        self.commands.append(Command(process, out, err))
        return self.commands[-1]

    def up(self, *arguments: str | Path) -> Command:
        """`fedloom up` on this desk's ports."""
        ports = ("--port", str(self.port), "--control-port", str(self.control_port))
        return self.start("up", *arguments, *ports, "--json")

    def require_clean(self, command: Command) -> None:
        """Nothing of the command is left: no process, no port."""
        assert command.left_behind() == []
        require_free_port("127.0.0.1", self.port, "--port")
        require_free_port("127.0.0.1", self.control_port, "--control-port")

    def rounds(self, run: str, folder: Path | None = None) -> list[dict[str, Any]]:
        """Return the round events of a run."""
        path = (folder or self.folder) / "runs" / run / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["event"] == "round"]
