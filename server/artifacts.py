"""Folder of a run, runs/<id>/; only it and `server.checkpoints` write to the server's disk."""

import json
import logging
import re
import secrets
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from common.arrays import Array, Arrays
from common.errors import ConfigError, DataError
from common.files import remove_drafts, write_atomically
from common.locks import HeldError, exclusive, holder
from server import tensor_file
from server.checkpoints import Checkpoints
from server.event_text import event_text
from server.events import Event, event_from_line, event_to_line
from server.result import Result
from server.result_file import read_result, write_result

LOCK_FILE = ".lock"  # locked by the process that works on the run
LOCK_SECONDS = 5.0  # time to release it for a process that lists runs, or is being ended
EVENTS_FILE = "metrics.jsonl"
FINAL_MODEL = "model.safetensors"
LOG = logging.getLogger(__name__)


def format_run_id(method: str, task: str, when: datetime, suffix: str) -> str:
    """Return an id such as `20261120-142501-fedrule-rules-ab12`; the suffix separates runs of one second."""
    return f"{when:%Y%m%d-%H%M%S}-{method}-{task}-{suffix}"


def make_run_id(method: str, task: str) -> str:
    """Return an unused run id of the current time."""
    return format_run_id(method, task, datetime.now(), secrets.token_hex(2))


class RunDirectory:
    """Folder of a run, readable without any service.

    Args:
        root: Folder of all runs; `runs` by default of the command line.
        run_id: Name of the folder.

    Raises:
        ConfigError: The name is not a plain folder name.
    """

    def __init__(self, root: Path, run_id: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run_id):
            raise ConfigError(
                f"invalid run id '{run_id}'; use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit"
            )
        self.path = root / run_id
        self.clients = self.path / "clients"  # snapshots of simulated clients
        self.checkpoints = Checkpoints(self.path / "checkpoints", self.clients)

    def create(self, config: Mapping[str, Any], catalogue: Mapping[str, Any]) -> None:
        """Create a new run with its resolved configuration and the task's public vocabulary.

        Raises:
            ConfigError: The run exists.
        """
        self.require_new()
        self.checkpoints.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / "catalogue.json", json.dumps(catalogue, indent=1, ensure_ascii=False).encode())
        write_atomically(self.path / "config.toml", tomli_w.dumps(config).encode())

    def resume(self, config: Mapping[str, Any]) -> None:
        """Resume the run under this resolved configuration; without such a run, raise ConfigError."""
        remove_drafts(self.path, self.checkpoints.path)
        if self.config() != config:
            write_atomically(self.path / "config.toml", tomli_w.dumps(config).encode())

    def discard(self) -> None:
        """Remove the configuration of a run that has not started, so that it can be created under another one."""
        (self.path / "config.toml").unlink()

    def require_new(self) -> None:
        """Check that no run of this name exists.

        Raises:
            ConfigError: The run exists.
        """
        if (self.path / "config.toml").exists():
            raise ConfigError(
                f"run '{self.path.name}' exists; resume it with --resume {self.path.name} or choose another --run-id"
            )

    @contextmanager
    def lock(self, wait: float = 0.0) -> Iterator[None]:
        """Lock the folder against other processes until the block or this process ends.

        `wait` is the time in seconds that another process has to end.

        Raises:
            ConfigError: Another process holds the lock.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        run = self.path.name
        try:
            with exclusive(self.path / LOCK_FILE, wait):
                yield
        except HeldError as held:
            raise ConfigError(f"run '{run}' is in use by {held}; end that process, then use --resume {run}") from None

    @property
    def holder(self) -> int:
        """Process that works on the run or was killed at it; 0 without one."""
        return holder(self.path / LOCK_FILE)

    def is_idle(self) -> bool:
        """Return True if no process works on the run at the moment."""
        try:
            with self.lock():
                return True
        except ConfigError:
            return False

    def config(self) -> dict[str, Any]:
        """Return the resolved configuration.

        Raises:
            ConfigError: There is no such run, or its file is damaged.
        """
        path = self.path / "config.toml"
        try:
            return tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise ConfigError(
                f"no run '{self.path.name}' in {self.path.parent}; {_list_newest(self.path.parent)}"
            ) from None
        except ValueError as error:
            raise ConfigError(f"{path} is damaged ({error}); restore it, or start the run anew") from None

    def catalogue(self) -> str:
        """Return the task's public vocabulary as JSON; a file that is no UTF-8 raises ConfigError."""
        path = self.path / "catalogue.json"
        try:
            return path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is damaged ({error})") from None

    def append(self, event: Event) -> None:
        """Append a line to metrics.jsonl and to the log; a line that a crash has torn is ended first."""
        with (self.path / EVENTS_FILE).open("a+b") as file:
            file.seek(max(file.tell() - 1, 0))  # append mode starts at the end and writes there, whatever the position
            torn = file.read() not in (b"", b"\n")
            file.write((b"\n" if torn else b"") + event_to_line(event))
        if text := event_text(event, self.path):
            LOG.info(text)

    def events(self) -> Iterator[Event]:
        """Yield the events so far without torn lines; nothing before the first event."""
        path = self.path / EVENTS_FILE
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                yield event_from_line(line)
            except DataError:
                LOG.warning("%s: an unreadable line is ignored", path)

    def save_model(self, arrays: Mapping[str, Array], about: Mapping[str, str], name: str = FINAL_MODEL) -> None:
        """Write a model file of this name, with `about` (method, task, round, ...) in its header."""
        write_atomically(self.path / name, tensor_file.dump(arrays, about))

    def load_model(self, name: str = FINAL_MODEL) -> tuple[Arrays, dict[str, str]]:
        """Return the last valid model, or the one of this name, and its header.

        Raises:
            StateError: The model is missing or damaged.
        """
        return tensor_file.load(self.path / name)

    def write_decision(self, decision: str) -> None:
        """Write decision.json: the cost of the current round."""
        write_atomically(self.path / "decision.json", decision.encode())

    def decision(self) -> str:
        """Return the newest decision; empty if there is none."""
        path = self.path / "decision.json"
        return path.read_text("utf-8") if path.exists() else ""

    def write_result(self, result: Result) -> None:
        """Write result.json, and of many clients clients.safetensors."""
        write_result(self.path, result)

    def result(self) -> Result | None:
        """Return the result; None if the run has not ended or was killed."""
        return read_result(self.path)


def _list_newest(root: Path) -> str:
    newest = sorted((p.parent for p in root.glob("*/config.toml")), key=lambda p: p.stat().st_mtime, reverse=True)
    return "newest runs: " + ", ".join(p.name for p in newest[:5]) if newest else "there are no runs yet"
