"""Withdrawal of a run of which a client is forgotten: the run that replaces it, and the receipt.

All files that depend on the client are deleted. An unfinished run with the same configuration and vocabulary replaces the run.
It refuses the client; when it completes, the receipt says so.
"""

import hashlib
import itertools
import logging
import secrets
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import tomli_w
from pydantic import TypeAdapter, ValidationError

from common.config.run import RunConfig
from common.errors import ASKS_FORGETTING, ConfigError, DataError, StateError
from common.files import write_atomically
from common.text import count
from server.record.events import Refusal, RoundEvent, Start
from server.record.folder import BEST_MODEL, EVENTS_FILE, FORGOTTEN_FILE, RunDirectory, find_replacement, go_back
from server.record.result import Result

RECEIPTS = ".forgotten"
"""Folder of the receipts in the folder of runs."""

LOG = logging.getLogger(__name__)

LONGEST_NAME = 90
"""Number of characters of a run's name that its replacement has, too."""

Done = Literal["withdrawn", "solved again", "trained again"]
"""Treatment of a run of the forgotten client."""


@dataclass(frozen=True)
class Forgotten:
    """Clients that a run is without, as digests of their names.

    Args:
        replaces: Name of the withdrawn run.
        salt: Salt of the digests.
        clients: Digests of the forgotten clients.
        others: Digests of the other clients of the withdrawn run.
    """

    replaces: str
    salt: str
    clients: list[str]
    others: list[str]

    def forgets(self, client: str) -> bool:
        """Return True if this client is forgotten, or the hub that hosts it."""
        return bool({self.mark(client), self.mark(client.partition("/")[0])} & {*self.clients})

    def mark(self, client: str) -> str:
        """Return the digest of a client's name."""
        return hashlib.sha256(f"{self.salt}/{client}".encode()).hexdigest()[:24]


_FORGOTTEN = TypeAdapter(Forgotten)


def read_forgotten(folder: RunDirectory) -> Forgotten | None:
    """Return the clients that a run is without; None if it has forgotten none.

    Raises:
        StateError: The file is damaged.
    """
    path = folder.path / FORGOTTEN_FILE
    try:
        return _FORGOTTEN.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        raise StateError(f"{path} is damaged; restore it, or remove the run") from None


@dataclass(frozen=True, kw_only=True)
class ReceiptEntry:
    """Entry of a receipt for one run.

    Args:
        run: Name of the withdrawn run.
        method: Its method.
        task: Its task.
        done: What was done with it.
        reason: Reason why nothing more was done; empty once the run was made again.
        replaced_by: Run without the client; empty if there is none.
        from_round: Round of the checkpoint from which that run goes on; 0 for the start.
        model_before: SHA-256 of the deleted model; empty if there was none.
        model_after: SHA-256 of the model without the client; empty until there is one.
    """

    run: str
    method: str
    task: str
    done: Done = "withdrawn"
    reason: str = ""
    replaced_by: str = ""
    from_round: int = 0
    model_before: str = ""
    model_after: str = ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Receipt of a forgotten client, the one file that still names it.

    Args:
        client: Name of the client.
        time: Time of the withdrawal, UTC.
        runs: Runs in which the client took part.
        removed: What else was deleted.
        stays: What could not be deleted, or must stay, and why.
    """

    client: str
    time: str = field(default_factory=_now)
    runs: list[ReceiptEntry]
    removed: list[str] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """File name, which does not name the client."""
        about = hashlib.sha256(f"{self.time}/{self.client}".encode()).hexdigest()[:8]
        return f"{self.time[:19].translate(str.maketrans('', '', ':-'))}-{about}.json"


_RECEIPT = TypeAdapter(Receipt)


def write_receipt(root: Path, receipt: Receipt) -> Path:
    """Write a receipt below the folder of runs, for its owner only; return the file."""
    path = root / RECEIPTS / receipt.name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(path, _RECEIPT.dump_json(receipt, indent=2) + b"\n", mode=0o600)
    return path


def read_receipt(path: Path) -> Receipt:
    """Return a stored receipt.

    Raises:
        StateError: The file is damaged.
    """
    try:
        return _RECEIPT.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise StateError(f"{path} is not a receipt") from None


def complete_receipts(root: Path, result: Result, *, is_solved: bool) -> None:
    """Note in the receipts that a run has replaced a withdrawn one."""
    if result.status == "completed":
        done: Done = "solved again" if is_solved else "trained again"
        _update_receipts(root, result.run, done=done, reason="", model_after=result.model_sha256)


def _update_receipts(root: Path, run: str, **changes: Any) -> None:
    """Change the lines of the receipts whose replacement is this run."""
    for path in sorted((root / RECEIPTS).glob("*.json")):
        try:
            receipt = read_receipt(path)
        except StateError as error:
            LOG.warning("%s; it is left as it is", error)
            continue
        if any(entry.replaced_by == run for entry in receipt.runs):
            lines = [replace(entry, **changes) if entry.replaced_by == run else entry for entry in receipt.runs]
            write_receipt(root, replace(receipt, runs=lines))


def clients_of(folder: RunDirectory) -> set[str]:
    """Return the names of the clients that took part in a run, by its events and its result."""
    names: set[str] = set()
    for event in folder.events():
        if isinstance(event, Start):
            names.update(event.clients)
        elif isinstance(event, RoundEvent):
            names.update(_participants(event))
    return names | {*(result.clients if (result := _result_of(folder)) else ())}


def _participants(event: RoundEvent) -> set[str]:
    """Return the clients of a round, without those that were refused."""
    return {*event.missing, *(name for name, one in event.clients.items() if one.state in ("online", "late"))}


def took_part(folder: RunDirectory, client: str) -> bool:
    """Return True if a client, or a client of this hub, took part in a run or in an earlier one.

    Earlier runs are those that it replaces and those from which it started.
    """
    forgotten = read_forgotten(folder)
    if forgotten and not forgotten.forgets(client) and forgotten.mark(client) in forgotten.others:
        return True
    return any(is_meant(name, client) for one in ancestry(folder) for name in clients_of(one))


def ancestry(folder: RunDirectory) -> list[RunDirectory]:
    """Return a run, the run from which it started, and so on, as far as they exist."""
    found = [folder]
    while name := str(_config_of(found[-1]).get("start-from", "")):
        parent = RunDirectory(folder.path.parent, name)
        if not parent.path.exists() or parent.path in [one.path for one in found]:
            break
        found.append(parent)
    return found


def _config_of(folder: RunDirectory) -> dict[str, Any]:
    """Return the configuration of a run; empty if there is none."""
    try:
        return folder.config()
    except ConfigError:
        return {}


def is_meant(name: str, client: str) -> bool:
    """Return True if a name is the client's, or that of a client of this hub."""
    return name == client or name.startswith(f"{client}/")


def find_requests(folder: RunDirectory) -> set[str]:
    """Return the names of the clients and nodes that asked to be forgotten in a run."""
    found: set[str] = set()
    for event in folder.events():
        if isinstance(event, RoundEvent):
            found.update(name for name, reason in event.refused.items() if ASKS_FORGETTING in reason)
        elif isinstance(event, Refusal) and ASKS_FORGETTING in event.reason:
            found.add(event.client)
    return found


def find_obstacle(config: RunConfig, others: int) -> str:
    """Return the reason why a run cannot be made again with so many clients; empty if it can."""
    if not others:
        return "no other client took part"
    if config.privacy.resolved_trust == "helpers" and others < config.secure_sums.fewest:
        return f"{count(others, 'other client')} took part, and a masked sum needs {config.secure_sums.fewest}"
    if others < config.federation.min_replies:
        return f"{count(others, 'other client')} took part, and a round needs {config.federation.min_replies}"
    return ""


def first_round(folder: RunDirectory, client: str) -> int:
    """Return the first round that may depend on a client, by the run's lines."""
    done = 0
    for event in folder.events():
        if isinstance(event, Start) and any(is_meant(name, client) for name in event.clients):
            return done + 1
        if isinstance(event, RoundEvent):
            if len(event.clients) < event.asked:  # the line leaves clients out
                return 1
            if any(is_meant(name, client) for name in _participants(event)):
                return event.round
            done = event.round
    return 1


def withdraw(
    folder: RunDirectory,
    config: RunConfig,
    client: str,
    files: Mapping[str, bytes] = MappingProxyType({}),
    *,
    keeps_rounds: bool,
) -> ReceiptEntry:
    """Delete a run, prepare the run without a client, and return the entry of the receipt.

    A process that is killed meanwhile leaves a run that can be withdrawn again.
    `files` are further files of the run without the client, by name. With `keeps_rounds`, a network's training may go on from a
    checkpoint before the client's first round.

    Raises:
        ConfigError: A process works on the run.
    """
    root, run = folder.path.parent, folder.path.name
    with folder.lock():
        names, before = clients_of(folder), read_forgotten(folder)
        forgotten = _with_client(before, run, names, client)
        result = _result_of(folder)
        start = _last_checkpoint(folder, config, client) if keeps_rounds else 0
        entry = ReceiptEntry(
            run=run,
            method=config.method,
            task=config.task,
            reason=find_obstacle(config, len(forgotten.others)),
            from_round=start,
            model_before=result.model_sha256 if result else "",
        )
        if not entry.reason:
            entry = replace(entry, replaced_by=_next_name(root, run))
            new = RunDirectory(root, entry.replaced_by)
            shutil.rmtree(new.path, ignore_errors=True)  # of a killed process
            new.checkpoints.path.mkdir(parents=True)
            if start:
                _copy_rounds(folder, new, client, start)
            stored = {**files, FORGOTTEN_FILE: _FORGOTTEN.dump_json(forgotten, indent=1)}
            _prepare(folder, new, stored, len(forgotten.others))
        _update_receipts(
            root, run, replaced_by=entry.replaced_by, reason=entry.reason, model_after="", done="withdrawn"
        )
        shutil.rmtree(folder.path)
    return entry


def _with_client(before: Forgotten | None, run: str, names: Collection[str], client: str) -> Forgotten:
    """Return what a run forgot before, and this client."""
    base = before or Forgotten(run, secrets.token_hex(8), [], [])
    mine = {base.mark(name) for name in (client, *names) if is_meant(name, client)}
    others = {*base.others, *map(base.mark, names)} - mine - {*base.clients}
    return replace(base, replaces=run, clients=sorted({*base.clients, *mine}), others=sorted(others))


def _next_name(root: Path, run: str) -> str:
    """Return the name of the run that replaces another one: `run.2`, or the next free one."""
    base, dot, number = run.rpartition(".")
    stem, last = (base, int(number)) if dot and number.isdecimal() and base else (run, 1)
    names = (f"{stem[:LONGEST_NAME]}.{k}" for k in itertools.count(last + 1))
    return next(name for name in names if not (root / name).exists() or _is_abandoned(RunDirectory(root, name), run))


def _is_abandoned(folder: RunDirectory, run: str) -> bool:
    """Return True if a killed process has written this replacement of a run, which was not made yet."""
    forgotten = read_forgotten(folder)
    return forgotten is not None and forgotten.replaces == run and not next(folder.events(), None)


def _last_checkpoint(folder: RunDirectory, config: RunConfig, client: str) -> int:
    """Return the last round with a checkpoint that does not depend on a client; 0 for the start.

    Clients of the new run have no state of earlier rounds. Methods that need one, noise, sums and planners start again.
    """
    capabilities = config.capabilities
    needs_start = (
        config.has_closed_form
        or bool(config.start_from)
        or config.needs_planner
        or config.privacy.resolved_trust == "helpers"
        or (config.privacy.unit, capabilities.private_layers, capabilities.own_model) != ("none", "none", "none")
    )
    if needs_start:
        return 0
    first = first_round(folder, client)
    return max((number for number in folder.checkpoints.rounds() if number < first), default=0)


def _prepare(old: RunDirectory, new: RunDirectory, files: Mapping[str, bytes], others: int) -> None:
    """Write the run that replaces another one, and starts with so many clients; its configuration is last."""
    vocabulary = new.path / "catalogue.json"
    shutil.copyfile(old.path / vocabulary.name, vocabulary)
    for name, content in files.items():
        write_atomically(new.path / name, content)
    config = {**old.config(), "run-id": new.path.name, "federation.min-clients": others}
    parent = str(config.get("start-from", ""))
    if parent and not (new.path.parent / parent).exists():  # withdrawn before
        replacement = find_replacement(new.path.parent, parent)
        config |= {"start-from": replacement} if replacement else {"start-from": "", "half-life": 0.0}
    if config["catalogue"] != "demo":
        config["catalogue"] = str(vocabulary)
    write_atomically(new.path / "config.toml", tomli_w.dumps(config).encode())


def _copy_rounds(old: RunDirectory, new: RunDirectory, client: str, start: int) -> None:
    """Copy lines, checkpoints and the best model up to a round, without lines that name a client."""
    lines = (old.path / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    mentions = (f'"{client}"'.encode(), f'"{client}/'.encode())
    unnamed = [line for line in lines if not any(one in line for one in mentions)]
    write_atomically(new.path / EVENTS_FILE, b"".join(unnamed))
    shutil.copytree(old.checkpoints.path, new.checkpoints.path, dirs_exist_ok=True)
    if (old.path / BEST_MODEL).exists():
        shutil.copyfile(old.path / BEST_MODEL, new.path / BEST_MODEL)
    go_back(new, start)


def _result_of(folder: RunDirectory) -> Result | None:
    """Return the result of a run; None if it has none or it is damaged."""
    try:
        return folder.result()
    except (DataError, StateError):
        return None
