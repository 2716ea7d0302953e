"""Forgetting of a client on the machine of a server: its runs, its name and its key."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from common.config.parse import parse
from common.errors import ConfigError
from common.node_names import read_names
from common.text import hint, printable
from deploy.cli.options import LOCAL
from deploy.data.sources import move_clients, stored_clients
from deploy.federation.runs import FILE as ORIGIN
from deploy.federation.runs import Origin, find_run, origin_of, runs_folder, stored_options, stored_runs
from deploy.keys.nodes import forget_key
from server.record.folder import RunDirectory
from server.record.withdrawal import (
    Receipt,
    ReceiptLine,
    clients_of,
    is_meant,
    read_receipt,
    took_part,
    withdraw,
    write_receipt,
)

COPIES = "copies of the old models that other clients store on their machines; the new run's model takes their place"
"""Limit: what has left the server."""

DIFFERENCE = "backups of the old runs' files, if you have any; an old sum minus the new one is the client's statistics"
"""Limit: what an exact sum reveals together with one without the client."""


def find_affected(client: str, names: Sequence[str], home: Path) -> list[RunDirectory]:
    """Return the runs in which a client took part, all of them idle.

    Args:
        client: Name of the client, or of a hub.
        names: Names of the runs; all if there are none.
        home: Folder of the server.

    Raises:
        ConfigError: The client is unknown, took no part in a named run, or a run is in progress.
    """
    folders = [find_run(name) for name in dict.fromkeys(names)] or stored_runs(runs_folder())
    affected = [folder for folder in folders if took_part(folder, client)]
    if absent := [folder.path.name for folder in folders if names and folder not in affected]:
        raise ConfigError(
            f"client '{printable(client, 80)}' took no part in run '{absent[0]}'{_hint(client, folders)}; see fedloom runs"
            f" show {absent[0]}"
        )
    if not affected and client not in read_names(home / "nodes"):
        raise ConfigError(
            f"no run in {runs_folder()} has a client '{printable(client, 80)}', and no key in {home / 'nodes'} has this"
            f" name{_hint(client, folders) or '; see fedloom nodes list'}"
        )
    if busy := [folder.path.name for folder in affected if not folder.is_idle()]:
        raise ConfigError(f"run '{busy[0]}' is in progress; end it with fedloom stop, and then forget the client")
    return affected


def _hint(client: str, folders: Sequence[RunDirectory]) -> str:
    return hint(client, {name for folder in folders for name in clients_of(folder)})


def forget_client(client: str, affected: Sequence[RunDirectory], home: Path | None) -> Path:
    """Withdraw the runs, forget the key if `home` is the server's folder, and return the file of the receipt.

    The receipt is written before the first run is deleted, and again after each of them.
    """
    receipt = Receipt(client=client, runs=[])
    path = write_receipt(runs_folder(), receipt)
    for folder in affected:
        line = _withdraw(folder, client)
        stays = _limits(folder, line)
        receipt = read_receipt(path)
        receipt = replace(receipt, runs=[*receipt.runs, line], stays=[*dict.fromkeys([*receipt.stays, *stays])])
        write_receipt(runs_folder(), receipt)
    if home:
        removed, stays = _forget_enrolment(client, home)
        receipt = replace(receipt, removed=removed, stays=[*receipt.stays, *stays])
        write_receipt(runs_folder(), receipt)
    return path


def _withdraw(folder: RunDirectory, client: str) -> ReceiptLine:
    origin, config = origin_of(folder.path), parse(stored_options(folder))
    files, keeps_rounds = {}, True
    if origin:
        markets = {name: text for name, text in origin.markets.items() if not is_meant(name, client)}
        files[ORIGIN] = json.dumps(asdict(replace(origin, markets=markets))).encode()
        keeps_rounds = origin.command != "simulate"  # whose clients' state is not at that round
    line = withdraw(folder, config, client, files, keeps_rounds=keeps_rounds)
    for command in ("up", "simulate"):
        _move_home(LOCAL / command / line.run, line.replaced_by, client)
    return line


def _move_home(home: Path, replaced_by: str, client: str) -> None:
    """Give the private files of a run on this machine to the run that replaces it, without the server's logs."""
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


def _limits(folder: RunDirectory, line: ReceiptLine) -> Iterator[str]:
    """Yield what the withdrawal of a run does not undo."""
    if (
        origin := origin_of(RunDirectory(folder.path.parent, line.replaced_by).path) if line.replaced_by else None
    ) and (origin.command in ("up", "simulate")):
        return
    yield COPIES
    yield DIFFERENCE


def _forget_enrolment(client: str, home: Path) -> tuple[list[str], list[str]]:
    """Return what was deleted of a client's enrolment, and what stays of it."""
    nodes, removed, stays = home / "nodes", [], []
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
    stays.append("this receipt, which names the client; delete it when you need no proof any more")
    return removed, stays


def make_again(path: Path, *, later: bool) -> Receipt:
    """Make the runs of a receipt again whose clients are on this machine, and return the receipt after that."""
    for line in read_receipt(path).runs:
        command = remake_command(runs_folder() / line.replaced_by) if line.replaced_by and not later else []
        if command and command[1] in ("up", "simulate") and not command[-1].endswith("…"):
            subprocess.run([sys.executable, "-m", "deploy.cli", *command[1:]], stdout=sys.stderr, check=False)
    return read_receipt(path)


def remake_command(run: Path) -> list[str]:
    """Return the command that makes a withdrawn run again."""
    origin = origin_of(run) or Origin("serve", "", 0)
    data = ["--data", "…"] if origin.command == "simulate" and not origin.data else []
    return ["fedloom", origin.command, "--resume", run.name, *data]


def describe_line(line: ReceiptLine) -> str:
    """Return a line of a receipt in a sentence."""
    start = f" from round {line.from_round}" if line.from_round else ""
    if line.done != "withdrawn":
        return f"{line.run}: {line.done}{start} as {line.replaced_by}; model {line.model_after[:16]}…"
    if line.reason:
        return f"{line.run}: withdrawn, and not made again: {line.reason}"
    return f"{line.run}: withdrawn; {line.replaced_by} replaces it once it is made{start}"
