"""Folder of a run, runs/<id>/: configuration, events, models, checkpoints and result.

Nothing else writes to the server's disk.
"""

import json
import logging
import os
import re
import secrets
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from common.arrays import Array, Arrays, group, sha256
from common.errors import ConfigError, DataError, NewerFormatError, StateError
from common.files import (
    FORMAT,
    LEAST_ROOM,
    HeldError,
    append_whole,
    await_room,
    be_patient,
    check_format,
    exclusive,
    holder,
    remove_drafts,
    write_atomically,
)
from server.record.events import Event, Metrics, Waiting, event_from_line, event_text, event_to_line
from server.record.result import ClientResult, Parent, Result, result_from_json, result_to_json


def dump_tensors(arrays: Mapping[str, Array], about: Mapping[str, str]) -> bytes:
    """Return the arrays as bytes, with `about` and their fingerprint in the header."""
    whole = {name: np.asarray(a, order="C") for name, a in arrays.items()}
    content: bytes = save(whole, metadata={**about, FORMAT: "1", "sha256": sha256(whole)})
    return content


def load_tensors(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Return arrays and header; inverse of `dump_tensors`.

    Raises:
        NewerFormatError: A newer program wrote the file.
        StateError: The file is missing, truncated or altered.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = dict(file.metadata() or {})
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError) as error:
        raise StateError(f"{path} cannot be read ({error})") from None
    check_format(path, about.pop(FORMAT, "1"))
    if about.pop("sha256", "") != sha256(arrays):
        raise StateError(f"{path} is damaged: its arrays do not match the fingerprint in its header")
    return arrays, about


LOG = logging.getLogger(__name__)


def write_patiently(path: Path, content: bytes) -> None:
    """Replace a file as soon as the disk has room for it."""
    be_patient(lambda: write_atomically(path, content), path)


RETAINED = 2  # newest checkpoints on disk: if one is torn, the other is whole
SPACED = 8  # further checkpoints at most, evenly spaced, to which `--round` can go back


@dataclass(frozen=True)
class Checkpoint:
    """State of a strategy after `round`, sufficient to resume.

    Args:
        round: Number of completed rounds.
        seed: Seed of the run; a checkpoint of another seed belongs to another run.
        groups: Named groups of arrays, e.g. `model`, `controls`, `moments`.
        state: JSON values of everything else.
    """

    round: int
    seed: int
    groups: dict[str, Arrays]
    state: dict[str, Any] = field(default_factory=dict)


class Checkpoints:
    """Folder of a run's checkpoints.

    Args:
        path: The folder; it must exist before the first `save`.
        clients: Folder of snapshots of simulated clients, one a round; they need the checkpoint of their round.
    """

    def __init__(self, path: Path, clients: Path) -> None:
        self.path, self._clients = path, clients

    def save(self, checkpoint: Checkpoint, best_round: int) -> None:
        """Write the checkpoint; keep the newest two, of `best_round` and snapshots, and evenly spaced ones."""
        header = {"round": checkpoint.round, "seed": checkpoint.seed, "state": checkpoint.state}
        header |= {"groups": list(checkpoint.groups), "model_sha256": sha256(checkpoint.groups.get("model", {}))}
        flat = {f"{key}/{name}": a for key, arrays in checkpoint.groups.items() for name, a in arrays.items()}
        about = {key: json.dumps(value) for key, value in header.items()}
        write_patiently(self._file(checkpoint.round), dump_tensors(flat, about))
        snapshots = (int(path.name) for path in self._clients.glob("*") if path.name.isdecimal())
        needed = {self._file(number) for number in (best_round, *snapshots, *spaced_rounds(checkpoint.round))}
        for path in set(self._files()[RETAINED:]) - needed:
            path.unlink()

    def discard_after(self, round_: int) -> None:
        """Delete the checkpoints of later rounds."""
        for number in self.rounds():
            if number > round_:
                self._file(number).unlink()

    def load(self, round_: int) -> Checkpoint:
        """Return the checkpoint of one round.

        Raises:
            StateError: The checkpoint is missing or damaged.
        """
        flat, about = load_tensors(self._file(round_))
        header = {key: json.loads(value) for key, value in about.items()}
        groups = {key: group(key, flat) for key in header["groups"]}
        return Checkpoint(header["round"], header["seed"], groups, header["state"])

    def load_latest(self) -> Checkpoint | None:
        """Return the newest readable checkpoint; None if there is no checkpoint.

        Raises:
            StateError: All checkpoints are damaged, or a newer program wrote one.
        """
        paths = self._files()
        for path in paths:
            try:
                return self.load(int(path.stem.removeprefix("round-")))
            except NewerFormatError:
                raise
            except StateError as error:
                LOG.warning("%s; trying the checkpoint before it", error)
        if paths:
            raise StateError(f"{self.path}: no checkpoint is readable; start a new run without --resume")
        return None

    @property
    def newest_bytes(self) -> int:
        """Size of the newest checkpoint; 0 without one."""
        return next((path.stat().st_size for path in self._files()), 0)

    def rounds(self) -> list[int]:
        """Return the numbers of the stored rounds, ascending."""
        return sorted(int(path.stem.removeprefix("round-")) for path in self._files())

    def _file(self, round_: int) -> Path:
        return self.path / f"round-{round_:06d}.safetensors"

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("round-*.safetensors"), reverse=True)


def spaced_rounds(newest: int) -> range:
    """Return at most `SPACED` rounds up to the newest, multiples of the smallest sufficient power of two."""
    step = 1
    while newest // step > SPACED:
        step *= 2
    return range(step, newest + 1, step)


RESULT, CLIENTS = "result.json", "clients.safetensors"

MANY = 10_000
"""Maximum number of clients whose results are in result.json."""

LEVELS = {"min": 0, "p1": 1, "p5": 5, "p25": 25, "p50": 50, "p75": 75, "p95": 95, "p99": 99, "max": 100}
"""Name of a quantile -> its percentage."""

EXAMPLES, VALUES = "examples", "values"


def _table(clients: Mapping[str, ClientResult]) -> tuple[Array, Array, list[str]]:
    """Return examples K, metrics K × M with NaN for absent ones, and the names of the M metrics."""
    metrics = sorted({name for one in clients.values() for name in one.metrics})
    values = np.array([[one.metrics.get(name, np.nan) for name in metrics] for one in clients.values()], np.float32)
    return np.array([one.examples for one in clients.values()], np.int64), values, metrics


def _read_table(path: Path) -> dict[str, ClientResult]:
    arrays, about = load_tensors(path)
    try:
        names, metrics = json.loads(about["clients"]), json.loads(about["metrics"])
        rows = zip(names, arrays[EXAMPLES].tolist(), arrays[VALUES].tolist(), strict=True)
        return {
            name: ClientResult(
                examples=examples, metrics={m: v for m, v in zip(metrics, values, strict=True) if not np.isnan(v)}
            )
            for name, examples, values in rows
        }
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path} is no table of clients") from None


def _spread(values: Array) -> Metrics:
    """Return quantiles of the measured values; empty if there are none."""
    measured = values[~np.isnan(values)]
    if not measured.size:
        return {}
    return {name: float(q) for name, q in zip(LEVELS, np.percentile(measured, [*LEVELS.values()]), strict=True)}


LOCK_FILE = ".lock"  # locked by the process that works on the run
LOCK_SECONDS = 5.0  # time to release it for a process that lists runs, or is being ended
EVENTS_FILE = "metrics.jsonl"
FINAL_MODEL, BEST_MODEL = "model.safetensors", "model-best.safetensors"


def make_run_id(method: str, task: str) -> str:
    """Return an unused id such as `20261120-142501-fedrule-rules-ab12`; its end is random."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{method}-{task}-{secrets.token_hex(2)}"


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
        self.write_catalogue(catalogue)
        self.configure(config)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the resolved configuration, with which the run exists."""
        self.checkpoints.path.mkdir(parents=True, exist_ok=True)
        write_patiently(self.path / "config.toml", tomli_w.dumps(config).encode())

    def write_catalogue(self, catalogue: Mapping[str, Any]) -> None:
        """Write the task's public vocabulary."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_patiently(self.path / "catalogue.json", json.dumps(catalogue, indent=1, ensure_ascii=False).encode())

    @property
    def has_catalogue(self) -> bool:
        """True if the run has its vocabulary; one that clients find comes after the configuration."""
        return (self.path / "catalogue.json").exists()

    def resume(self, config: Mapping[str, Any]) -> None:
        """Resume the run under this resolved configuration; without such a run, raise ConfigError."""
        remove_drafts(self.path, self.checkpoints.path)
        if self.config() != config:
            self.configure(config)

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
            root, run = self.path.parent, self.path.name
            if replacement := find_replacement(root, run):
                raise ConfigError(
                    f"run '{run}' was withdrawn, since one of its clients is forgotten; use run '{replacement}'"
                ) from None
            raise ConfigError(f"no run '{run}' in {root}; {_list_newest(root)}") from None
        except ValueError as error:
            raise ConfigError(f"{path} is damaged ({error}); restore it, or start the run anew") from None

    def catalogue(self) -> str:
        """Return the task's public vocabulary as JSON; a file that is missing or no UTF-8 raises ConfigError."""
        path = self.path / "catalogue.json"
        try:
            return path.read_text("utf-8")
        except FileNotFoundError:
            raise ConfigError(
                f"run '{self.path.name}' has no vocabulary; resume it, so that clients find one"
            ) from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is damaged ({error})") from None

    def append(self, event: Event) -> None:
        """Append a line to metrics.jsonl and to the log; a line that a crash has torn is ended first."""
        be_patient(lambda: self._append(event), self.path / EVENTS_FILE)
        if text := event_text(event, self.path):
            LOG.info(text)

    def _append(self, event: Event) -> None:
        path = self.path / EVENTS_FILE
        append_whole(path, (b"\n" if _is_torn(path) else b"") + event_to_line(event), mode=0o666)

    def await_room(self, *others: Path) -> None:
        """Wait until the disks of this folder and of others have room for a round; the wait is an event."""
        needed = LEAST_ROOM + 2 * self.checkpoints.newest_bytes

        def report(shortage: str) -> None:
            with suppress(OSError):  # not even room for a line
                self._append(Waiting(disk=shortage))
            LOG.warning("%s; waiting for room", shortage)

        await_room(self.path, *others, report=report, needed=needed)

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
        write_patiently(self.path / name, dump_tensors(arrays, about))

    def load_model(self, name: str = FINAL_MODEL) -> tuple[Arrays, dict[str, str]]:
        """Return the last valid model, or the one of this name, and its header.

        Raises:
            StateError: The model is missing or damaged.
        """
        return load_tensors(self.path / name)

    def write_decision(self, decision: str) -> None:
        """Write decision.json: the cost of the current round."""
        write_patiently(self.path / "decision.json", decision.encode())

    def decision(self) -> str:
        """Return the newest decision; empty if there is none."""
        path = self.path / "decision.json"
        return path.read_text("utf-8") if path.exists() else ""

    def write_parent(self, parent: Parent) -> None:
        """Write parent.json: the run from which this one starts."""
        write_patiently(self.path / "parent.json", json.dumps(asdict(parent), indent=1).encode())

    def parent(self) -> Parent | None:
        """Return the run from which this one started; None if there is none."""
        path = self.path / "parent.json"
        return Parent(**json.loads(path.read_bytes())) if path.exists() else None

    def write_result(self, result: Result) -> None:
        """Write result.json; of more than `MANY` clients, it has quantiles only, beside clients.safetensors."""
        if len(result.clients) > MANY:
            examples, values, metrics = _table(result.clients)
            about = {"clients": json.dumps([*result.clients]), "metrics": json.dumps(metrics)}
            write_patiently(self.path / CLIENTS, dump_tensors({EXAMPLES: examples, VALUES: values}, about))
            spread = {EXAMPLES: _spread(examples), **{m: _spread(values[:, k]) for k, m in enumerate(metrics)}}
            result = replace(result, clients={}, spread=spread)
        write_patiently(self.path / RESULT, result_to_json(result))

    def result(self) -> Result | None:
        """Return the result with all clients; None if the run has not ended or was killed.

        Raises:
            DataError: result.json is torn, or the table fits no result.
            StateError: The table is missing or damaged.
        """
        path = self.path / RESULT
        if not path.exists():
            return None
        result = result_from_json(path.read_bytes())
        return replace(result, clients=_read_table(self.path / CLIENTS)) if result.spread else result


def _is_torn(path: Path) -> bool:
    """Return True if the last line of a file has no end."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        return file.read() not in (b"", b"\n")


FORGOTTEN_FILE = "forgotten.json"
"""File of a run that is without forgotten clients, and names the run that it replaces."""


def find_replacement(root: Path, run: str) -> str:
    """Return the run that replaces a withdrawn one; empty if there is none."""
    for path in sorted(root.glob(f"*/{FORGOTTEN_FILE}")):
        with suppress(OSError, ValueError):
            if json.loads(path.read_bytes()).get("replaces") == run:
                return path.parent.name
    return ""


def _list_newest(root: Path) -> str:
    newest = sorted((p.parent for p in root.glob("*/config.toml")), key=lambda p: p.stat().st_mtime, reverse=True)
    return "newest runs: " + ", ".join(p.name for p in newest[:5]) if newest else "there are no runs yet"


REPLAYED = f"{EVENTS_FILE}.replayed"
"""File with the lines of rounds that a resumed run computed again."""


def go_back(folder: RunDirectory, number: int) -> None:
    """Remove all that followed a round: checkpoints, lines, decision, result and best model.

    Raises:
        ConfigError: The run has no checkpoint of that round.
    """
    stored = folder.checkpoints.rounds()
    if number not in stored:
        listed = ", ".join(map(str, stored)) or "none"
        raise ConfigError(
            f"run '{folder.path.name}' has no checkpoint of round {number}; choose --round from: {listed}"
        )
    folder.checkpoints.load(number)  # a damaged one raises before anything is removed
    _cut_lines(folder, number)
    (folder.path / "decision.json").unlink(missing_ok=True)
    _remove_later(folder, number)


def replay_after(folder: RunDirectory, number: int) -> None:
    """Prepare to compute the rounds after this one again; their lines go to `REPLAYED`.

    The decision on the next round stays: clients may have been charged for it.
    """
    _cut_lines(folder, number, folder.path / REPLAYED)
    if (decision := folder.decision()) and json.loads(decision)["number"] > number + 1:
        (folder.path / "decision.json").unlink()
    _remove_later(folder, number)


def _cut_lines(folder: RunDirectory, number: int, archive: Path | None = None) -> None:
    """Remove the lines that followed a round, or append them to an archive."""
    path = folder.path / EVENTS_FILE
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    later = [line for line in lines if _is_later(line, number)]
    if later and archive:
        with archive.open("ab") as file:
            file.writelines(later)
    if later:
        write_atomically(path, b"".join(line for line in lines if not _is_later(line, number)))


def _remove_later(folder: RunDirectory, number: int) -> None:
    best = folder.path / BEST_MODEL
    if best.exists() and int(folder.load_model(BEST_MODEL)[1].get("round", 0)) > number:
        best.unlink()
    (folder.path / RESULT).unlink(missing_ok=True)
    folder.checkpoints.discard_after(number)


def _is_later(line: bytes, number: int) -> bool:
    """Return True for the line of a later round, and for the end of the run."""
    try:
        event = json.loads(line)
    except ValueError:  # torn
        return False
    return bool(event.get("event") == "finish" or event.get("round", 0) > number)
