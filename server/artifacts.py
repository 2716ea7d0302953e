"""The run's folder, runs/<id>/: the only place of the server that writes to the disk."""

import fcntl
import json
import logging
import re
import secrets
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from common.arrays import Array, Arrays, group, prefixed, sha256
from common.errors import ConfigError, DataError, StateError
from common.files import write_atomically
from server import tensor_file
from server.events import Event, Result, event_from_line, event_to_line, result_from_json, result_to_json

KEEP = 2  # newest checkpoints that stay: one may be torn, the other is then whole
LOCK = ".lock"  # held by the process that is at work on the run
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """All that a strategy needs to go on after `round`.

    Args:
        round: Rounds that are done.
        seed: The run's seed; a checkpoint of another seed is another run.
        groups: Named groups of arrays, e.g. `model`, `controls`, `moments`.
        state: What arrays cannot hold, as JSON values.
    """

    round: int
    seed: int
    groups: dict[str, Arrays]
    state: dict[str, Any] = field(default_factory=dict)


def new_run_id(method: str, task: str, when: datetime, suffix: str) -> str:
    """Such as `20261120-142501-fedrule-rules-ab12`; the suffix keeps two runs of one second apart."""
    return f"{when:%Y%m%d-%H%M%S}-{method}-{task}-{suffix}"


def fresh_run_id(method: str, task: str) -> str:
    """A run id of this moment that nobody has used."""
    return new_run_id(method, task, datetime.now(), secrets.token_hex(2))


class RunDirectory:
    """runs/<id>/: a folder anyone can read without a service.

    Args:
        root: Where runs live, `runs` by default of the command line.
        run_id: Name of the folder.

    Raises:
        ConfigError: The name is no plain folder name.
    """

    def __init__(self, root: Path, run_id: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run_id):
            raise ConfigError(
                f"run id '{run_id}': use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit"
            )
        self.path = root / run_id

    def create(self, config: Mapping[str, Any], catalogue: Mapping[str, Any]) -> None:
        """Begin a new run with its resolved configuration and the task's public vocabulary.

        Raises:
            ConfigError: The run exists already.
        """
        self.require_new()
        (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / "catalogue.json", json.dumps(catalogue, indent=1, ensure_ascii=False).encode())
        write_atomically(self.path / "config.toml", tomli_w.dumps(config).encode())

    def go_on(self, config: Mapping[str, Any]) -> None:
        """Go on with the run, whose resolved configuration is this from now on; raises ConfigError if there is no such run."""
        if self.config() != config:
            write_atomically(self.path / "config.toml", tomli_w.dumps(config).encode())

    def require_new(self) -> None:
        """Check that no run of this name has begun.

        Raises:
            ConfigError: One has.
        """
        if (self.path / "config.toml").exists():
            raise ConfigError(
                f"run '{self.path.name}' exists already: go on with --resume {self.path.name}, or pick another --run-id"
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder, so that no other process works on the run; let go when this one ends, however it does.

        Raises:
            ConfigError: Another process holds it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                run = self.path.name
                raise ConfigError(
                    f"run '{run}' is still going on in another process; wait for its end, or stop it, and then --resume {run}"
                ) from None
            except OSError as error:  # some shared file systems have no locks
                LOG.warning("%s cannot be locked: %s", self.path, error.strerror)
            yield

    def idle(self) -> bool:
        """Whether no process works on the run at the moment."""
        try:
            with self.held():
                return True
        except ConfigError:
            return False

    def config(self) -> dict[str, Any]:
        """The resolved configuration.

        Raises:
            ConfigError: There is no such run.
        """
        try:
            return tomllib.loads((self.path / "config.toml").read_text("utf-8"))
        except FileNotFoundError:
            raise ConfigError(
                f"no run '{self.path.name}' in {self.path.parent}; {_neighbours(self.path.parent)}"
            ) from None

    def catalogue(self) -> str:
        """The task's public vocabulary as JSON."""
        return (self.path / "catalogue.json").read_text("utf-8")

    def append(self, event: Event) -> None:
        """Add a line to metrics.jsonl, at once; a line that a crash has torn is closed first."""
        with (self.path / "metrics.jsonl").open("a+b") as file:
            file.seek(max(file.tell() - 1, 0))  # append mode starts at the end, and writes there wherever we look
            torn = file.read() not in (b"", b"\n")
            file.write((b"\n" if torn else b"") + event_to_line(event))

    def events(self) -> Iterator[Event]:
        """The events so far, torn lines left out; empty before the first."""
        path = self.path / "metrics.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                yield event_from_line(line)
            except DataError:
                LOG.warning("%s: a line is not readable and left out", path)

    def save_model(self, arrays: Mapping[str, Array], about: Mapping[str, str]) -> None:
        """Write model.safetensors, with `about` (method, task, round, ...) in its header."""
        write_atomically(self.path / "model.safetensors", tensor_file.dump(arrays, about))

    def load_model(self) -> tuple[Arrays, dict[str, str]]:
        """The last good model and what its header says.

        Raises:
            StateError: There is none, or it is damaged.
        """
        return tensor_file.load(self.path / "model.safetensors")

    def save_checkpoint(self, checkpoint: Checkpoint, best_round: int) -> None:
        """Write the checkpoint, then drop all but the newest two and that of `best_round`."""
        header = {"round": checkpoint.round, "seed": checkpoint.seed, "state": checkpoint.state}
        header |= {"groups": list(checkpoint.groups), "model_sha256": sha256(checkpoint.groups.get("model", {}))}
        flat = {name: a for key, arrays in checkpoint.groups.items() for name, a in prefixed(key, arrays).items()}
        about = {key: json.dumps(value) for key, value in header.items()}
        write_atomically(self._checkpoint(checkpoint.round), tensor_file.dump(flat, about))
        for path in set(self._checkpoints()[KEEP:]) - {self._checkpoint(best_round)}:
            path.unlink()

    def load_checkpoint(self, round_: int) -> Checkpoint:
        """The checkpoint of one round.

        Raises:
            StateError: There is none, or it is damaged.
        """
        flat, about = tensor_file.load(self._checkpoint(round_))
        header = {key: json.loads(value) for key, value in about.items()}
        groups = {key: group(key, flat) for key in header["groups"]}
        return Checkpoint(header["round"], header["seed"], groups, header["state"])

    def load_latest(self) -> Checkpoint | None:
        """The newest readable checkpoint; None where none was ever written.

        Raises:
            StateError: There are checkpoints, and all of them are damaged.
        """
        paths = self._checkpoints()
        for path in paths:
            try:
                return self.load_checkpoint(int(path.stem.removeprefix("round-")))
            except StateError as error:
                LOG.warning("%s; trying the checkpoint before it", error)
        if paths:
            raise StateError(
                f"{self.path / 'checkpoints'}: no checkpoint is readable; start a new run without --resume"
            )
        return None

    def write_decision(self, decision: str) -> None:
        """Write decision.json: what the round under way costs."""
        write_atomically(self.path / "decision.json", decision.encode())

    def decision(self) -> str:
        """The newest decision; empty where none was ever made."""
        path = self.path / "decision.json"
        return path.read_text("utf-8") if path.exists() else ""

    def write_result(self, result: Result) -> None:
        """Write result.json."""
        write_atomically(self.path / "result.json", result_to_json(result))

    def result(self) -> Result | None:
        """What the run came to; None while it goes on, or if it was killed."""
        path = self.path / "result.json"
        return result_from_json(path.read_bytes()) if path.exists() else None

    def _checkpoint(self, round_: int) -> Path:
        return self.path / "checkpoints" / f"round-{round_:06d}.safetensors"

    def _checkpoints(self) -> list[Path]:
        return sorted((self.path / "checkpoints").glob("round-*.safetensors"), reverse=True)


def _neighbours(root: Path) -> str:
    newest = sorted((p.parent for p in root.glob("*/config.toml")), key=lambda p: p.stat().st_mtime, reverse=True)
    return "there are " + ", ".join(p.name for p in newest[:5]) if newest else "there are no runs yet"
