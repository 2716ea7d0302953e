"""Forgetting of a client on the machine of a server: its runs, its name and its key."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.config.parse import parse
from common.errors import ConfigError
from common.node_names import read_names
from common.text import hint, printable
from deploy.cli.options import LOCAL
from deploy.data.sources import move_clients, stored_clients
from deploy.federation.runs import FILE as ORIGIN
from deploy.federation.runs import TRASH, Origin, origin_of, origin_to_json, runs_folder, stored_options, stored_runs
from deploy.keys.nodes import forget_key
from server.record.folder import EVENTS_FILE, RunDirectory
from server.record.withdrawal import (
    Receipt,
    ReceiptEntry,
    ancestry,
    clients_of,
    find_requests,
    is_meant,
    read_receipt,
    took_part,
    withdraw,
    write_receipt,
)

STDERR = 2
"""File descriptor for all output of the commands that make runs again; stdout has the receipt alone."""

COPIES = "copies of the old models that other clients store on their machines; the new run's model takes their place"
"""Limit: what has left the server."""

DIFFERENCE = (
    "backups of the old runs' files, if you have any; an exact old sum minus the new one is what the client added"
)
"""Limit: what an exact sum reveals together with one without the client."""


def find_affected(client: str, names: Sequence[str], home: Path) -> list[RunDirectory]:
    """Return the runs in which a client took part, and those that started from them; all are idle.

    Args:
        client: Name of the client, or of a hub.
        names: Names of the runs; all if there are none.
        home: Folder of the server.

    Raises:
        ConfigError: The client is unknown, took no part in a named run, or a run is in progress.
    """
    root = runs_folder()
    folders = [RunDirectory(root, name) for name in dict.fromkeys(names)] or stored_runs(root)
    for folder in folders:
        folder.config()
    affected = [folder for folder in folders if took_part(folder, client)]
    mine = {folder.path for folder in affected}
    affected += [
        folder
        for folder in stored_runs(runs_folder())
        if folder.path not in mine and any(one.path in mine for one in ancestry(folder))
    ]
    affected.sort(key=lambda folder: len(ancestry(folder)))  # a run starts from another one once that is made again
    if absent := [folder.path.name for folder in folders if names and folder not in affected]:
        raise ConfigError(
            f"client '{printable(client, 80)}' took no part in run '{absent[0]}'{_hint(client, folders)}; see fedloom runs"
            f" show {absent[0]}"
        )
    if not affected and client not in read_names(home / "nodes"):
        raise ConfigError(
            f"no run in {root} has a client '{printable(client, 80)}', and no key in {home / 'nodes'} has this"
            f" name{_hint(client, folders) or '; see fedloom nodes list'}"
        )
    if busy := [folder.path.name for folder in affected if not folder.is_idle()]:
        raise ConfigError(f"run '{busy[0]}' is in progress; end it with fedloom stop, and then forget the client")
    return affected


def list_requests() -> dict[str, list[str]]:
    """Return client that asks to be forgotten -> runs in which it took part."""
    folders = stored_runs(runs_folder())
    asking = sorted({name for folder in folders for name in find_requests(folder)})
    found = {name: [folder.path.name for folder in folders if took_part(folder, name)] for name in asking}
    return {name: runs for name, runs in found.items() if runs}  # without nodes that had no name yet


def _hint(client: str, folders: Sequence[RunDirectory]) -> str:
    return hint(client, {name for folder in folders for name in clients_of(folder)})


def forget_client(client: str, affected: Sequence[RunDirectory], home: Path | None) -> Path:
    """Withdraw the runs, and return the file of the receipt.

    The name and the key are forgotten if `home` is the server's folder. The receipt is written before the first run is deleted,
    and after each of them.
    """
    path = write_receipt(runs_folder(), Receipt(client=client, runs=[]))
    for folder in affected:
        entry = _withdraw(folder, client)
        receipt = read_receipt(path)  # earlier entries may have changed
        stays = dict.fromkeys([*receipt.stays, *_limits(entry, client)])
        write_receipt(runs_folder(), replace(receipt, runs=[*receipt.runs, entry], stays=[*stays]))
    if home:
        receipt = read_receipt(path)
        removed, stay = _forget_enrolment(client, home)
        write_receipt(runs_folder(), replace(receipt, removed=removed, stays=[*receipt.stays, *stay]))
    return path


def _withdraw(folder: RunDirectory, client: str) -> ReceiptEntry:
    origin, config = origin_of(folder.path), parse(stored_options(folder))
    files: dict[str, bytes] = {}
    keeps_rounds = True
    if origin:
        markets = {name: text for name, text in origin.markets.items() if not is_meant(name, client)}
        files[ORIGIN] = origin_to_json(replace(origin, markets=markets))
        keeps_rounds = origin.command != "simulate"  # whose clients' state is not at that round
    entry = withdraw(folder, config, client, files, keeps_rounds=keeps_rounds)
    for command in ("up", "simulate"):
        _move_home(LOCAL / command / entry.run, entry.replaced_by, client)
    return entry


def _move_home(home: Path, replaced_by: str, client: str) -> None:
    """Give the private files of a run on this machine to the run that replaces it.

    Its server's files, whose logs name the client, are deleted.
    """
    if not home.is_dir():
        return
    shutil.rmtree(home / "server", ignore_errors=True)
    if not (home / "clients.json").exists():
        shutil.rmtree(home)
    elif replaced_by:
        for spec in stored_clients(home):  # the models that they received
            for old in (spec.state or spec.home / "state").glob(f"{spec.name}/*/{home.name}"):
                shutil.rmtree(old)
        move_clients(home, home.with_name(replaced_by), lambda name: is_meant(name, client))


def _limits(entry: ReceiptEntry, client: str) -> Iterator[str]:
    """Yield what the withdrawal of a run does not undo."""
    origin = origin_of(runs_folder() / entry.replaced_by) if entry.replaced_by else None
    if not (origin and origin.command in ("up", "simulate")):
        yield COPIES
    yield DIFFERENCE
    if entry.replaced_by and (private := LOCAL / "up" / entry.replaced_by / client).is_dir():
        yield f"the client's own files in {private}, with its ledger; its owner deletes them"


def _forget_enrolment(client: str, home: Path) -> tuple[list[str], list[str]]:
    """Return what was deleted of a client's enrolment, and what stays of it."""
    nodes = home / "nodes"
    removed: list[str] = []
    stays: list[str] = []
    if "/" in client:
        stays.append(
            f"the key of hub '{client.partition('/')[0]}', and the head of this client's ledger in {nodes}, which protects its"
            " owner's budget against an older copy; the hub's operator removes the client from clients.toml"
        )
    elif mark := forget_key(nodes, client):
        removed += [f"name '{client}' and key {mark} in {nodes}", "heads of its privacy ledgers"]
        stays.append(f"the key {mark}, without a name, as refused; its owner joins again by a new key only")
    if logs := [
        path for path in sorted(home.glob("**/*.log*")) if path.is_file() and client.encode() in path.read_bytes()
    ]:
        stays.append(f"lines of logs that name it: {', '.join(map(str, logs))}; delete them when you need them no more")
    stays += _find_mentions(client)
    stays.append("this receipt, which names the client; delete it when you need no proof any more")
    return removed, stays


def _find_mentions(client: str) -> Iterator[str]:
    """Yield the runs that are not withdrawn and name a client: removed ones, and those that refused it."""
    root, quoted = runs_folder(), json.dumps(client).encode()
    for folder, reason in ((root, "refused it"), (root / TRASH, "were removed")):
        events = (run.path / EVENTS_FILE for run in stored_runs(folder))
        names = [path.parent.name for path in events if path.exists() and quoted in path.read_bytes()]
        if names:
            yield f"its name in runs that {reason}: {', '.join(names)} in {folder}; delete them if you need them no more"


def make_again(path: Path, *, later: bool) -> Receipt:
    """Make the runs again whose clients are on this machine, and return the receipt after that."""
    for entry in read_receipt(path).runs:
        command = remake_command(runs_folder() / entry.replaced_by) if entry.replaced_by and not later else []
        if command and command[1] in ("up", "simulate") and not command[-1].endswith("…"):
            subprocess.run([sys.executable, "-m", "deploy.cli", *command[1:]], stdout=STDERR, check=False)
    return read_receipt(path)


def remake_command(run: Path) -> list[str]:
    """Return the command that makes a withdrawn run again."""
    origin = origin_of(run) or Origin("serve", "", 0)
    data = ["--data", "…"] if origin.command == "simulate" and not origin.data else []
    return ["fedloom", origin.command, "--resume", run.name, *data]


def describe_entry(entry: ReceiptEntry) -> str:
    """Return an entry of a receipt in a sentence."""
    start = f" from round {entry.from_round}" if entry.from_round else ""
    if entry.done != "withdrawn":
        return f"{entry.run}: {entry.done}{start} as {entry.replaced_by}; model {entry.model_after[:16]}…"
    if entry.reason:
        return f"{entry.run}: withdrawn, and not made again: {entry.reason}"
    return f"{entry.run}: withdrawn; {entry.replaced_by} replaces it once it is made{start}"
