"""Start of both halves of a federation: a SuperLink with a run, and clients that join it."""

import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rich.console import Console

from common.config.run import RunConfig
from common.errors import ConfigError, FedloomError
from common.files import HeldError, exclusive
from deploy.cli.output import await_room_in
from deploy.federation.fork_server import flower_environment
from deploy.federation.processes import Child, Processes
from deploy.federation.watch import Pulse, how_to_continue, supervise, watch
from deploy.files import write_file
from deploy.keys.nodes import make_node_key, public_path
from deploy.superlink.control import Control, Gate, import_apis, make_app
from deploy.superlink.superlink import FLOWER_HOME, SuperLinkSettings, erase_database, start_app, start_superlink
from server.record.folder import EVENTS_FILE, RunDirectory
from server.record.process import COMMAND, record_process
from server.record.process import FOLDER as RECORDS
from server.record.result import Result

FILE = "server.lock"
WAIT_SECONDS = 5.0  # seconds for a command that is being ended


@contextmanager
def locked_home(folder: Path) -> Iterator[None]:
    """Lock the folder of a server until the block or this process ends.

    Raises:
        ConfigError: Another process serves from the folder.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with exclusive(folder / FILE, WAIT_SECONDS):
            yield
    except HeldError as held:
        raise ConfigError(
            f"{folder} is in use by {held}; end it with fedloom stop --home {folder}, or use another --home"
        ) from None


APP = "app"
"""Folder of a SuperLink with the Flower app of its run."""


@dataclass(frozen=True)
class ClientSpec:
    """Client process to start on this machine.

    Args:
        name: Public name.
        task: Task of its data.
        data: Source of its data.
        home: Folder of its key and log.
        shard: Shard `k/K`, the k-th of K partitions of the data.
        state: Folder of its private state; None for a folder in `home`.
        source: Data set that was partitioned; empty for generated data.
        dialect: Options of `join` for the owner's own table.
    """

    name: str
    task: str
    data: str
    home: Path
    shard: str = ""
    state: Path | None = None
    source: str = ""
    dialect: Sequence[str] = ()


def start_client(
    processes: Processes,
    client: ClientSpec,
    server: str,
    ca: Path,
    policy: Path | None,
    patience: float,
    device: str = "cpu",
) -> Path:
    """Start a resident client with its own key, created in its folder; return the public key's file.

    `patience` is the time in seconds that the client waits for admission, and `device` that of its training.
    """
    words: list[str | Path] = ["--task", client.task, "--data", client.data]
    words += ["--state-dir", client.state or client.home / "state"]
    words += ["--shard", client.shard] if client.shard else []
    words += ["--device", device] if device != "cpu" else []
    words += client.dialect
    words += ["--policy", policy] if policy else []
    words += ["--accept", "policy"]  # the server has the same owner
    log = client.home / "client.log"
    return _start_node(processes, "join", client.name, client.home, log, server, ca, patience, words)


def start_helper(processes: Processes, home: Path, server: str, ca: Path, patience: float) -> Path:
    """Start a helper, whose name is that of its folder, as `start_client` does."""
    return _start_node(processes, "helper", home.name, home, home / "helper.log", server, ca, patience, [])


def _start_node(
    processes: Processes,
    command: str,
    name: str,
    home: Path,
    log: Path,
    server: str,
    ca: Path,
    patience: float,
    words: Sequence[str | Path],
) -> Path:
    key = home / "node.key"
    if not key.exists():
        make_node_key(key)
    node: list[str | Path] = ["--server", server, "--ca", ca, "--key", key, "--name", name]
    node += ["--patience", f"{patience:g}"]
    processes.start(
        name,
        [sys.executable, "-m", "deploy.cli", command, *node, *words],
        log=log,
        environment=flower_environment({"OMP_NUM_THREADS": "1"}),
        records=ca.parent / RECORDS,
        preload=command == "join",  # a helper does not need the imports of clients
    )
    return public_path(key)


@dataclass(frozen=True)
class Order:
    """Run to start.

    Keys that appear later in `nodes` are admitted too. `after` may add to the result, such as measurements on this machine.
    """

    config: RunConfig
    runs: Path
    keys: Sequence[Path] = ()
    nodes: Path | None = None
    after: Callable[[Result], Result] = lambda result: result


def train(
    processes: Processes,
    superlink: SuperLinkSettings,
    order: Order,
    console: Console,
    start_clients: Callable[[], Sequence[Path]] = tuple,
) -> Result:
    """Start a SuperLink and a run on it, and watch it to its end; again if its processes end before.

    `start_clients` starts clients of this command once, and returns their public keys. It is called while the SuperLink starts.
    """
    folder = RunDirectory(order.runs, order.config.run_id)
    await_room_in(superlink.folder, folder.path)
    began, variables = _size(folder), {"FEDLOOM_RUNS": str(order.runs), "OMP_NUM_THREADS": "1"}
    variables |= {"FEDLOOM_NODES": str(order.nodes)} if order.nodes else {}
    superlink = replace(superlink, authenticate=True, own_app=True, environment=variables)
    started, clients = list[Child](), cache(start_clients)
    (imports := threading.Thread(target=import_apis, daemon=True)).start()

    def attempt(again: bool) -> Result:
        has_begun = again and (folder.path / "config.toml").exists()  # it may have ended while it searched for helpers
        config = order.config.model_copy(update={"resume": True}) if has_begun else order.config
        server = start_superlink(processes, superlink, clients)
        imports.join()  # two threads that import Flower find half of its modules
        ours = [server]

        def start_own_app() -> Child:
            ours.append(start_app(processes, superlink))
            return ours[-1]

        control = Control(superlink.control_address, superlink.certificates.ca if superlink.certificates else None)
        run = replace(order, config=config, keys=[*order.keys, *clients()])
        try:
            return submit(processes, superlink.folder, control, run, console, (server, start_own_app), began)
        except (FedloomError, OSError):
            processes.kill(*ours)
            raise
        finally:
            started.extend(ours)

    with locked_home(superlink.folder):
        record_process(superlink.folder / RECORDS, COMMAND, run=order.config.run_id)
        try:
            return supervise(attempt, folder, console, home=superlink.folder)
        finally:
            if superlink.database:
                processes.kill(*started)  # it would make the file anew
                erase_database(superlink.database_file)
            erase_apps(superlink.folder)


def erase_apps(folder: Path) -> None:
    """Delete the apps of a run that has ended; after a kill, the next start does."""
    for bundle in (folder / APP, folder / FLOWER_HOME):
        shutil.rmtree(bundle, ignore_errors=True)


def submit(
    processes: Processes,
    folder: Path,
    control: Control,
    order: Order,
    console: Console,
    server: tuple[Child, Callable[[], Child]] | None = None,
    began: int | None = None,
) -> Result:
    """Start a run on a running SuperLink and watch it to its end; `folder` is for this command's files.

    `server` is the SuperLink with the start of its ServerApp if they belong to this command, `began` the size of the run's
    events when the command began. The ServerApp starts last, since it waits for the imports of the fork server.
    """
    gate = Gate(control, order.nodes, console, set(order.nodes.glob("*.pub"))) if order.nodes else None
    for key in sorted({*order.keys, *(gate.admitted if gate else ())}):
        control.register(key)
    if gate:
        gate.remove_revoked()
    run = RunDirectory(order.runs, order.config.run_id)
    start = _size(run)
    with _set_aside(run.path / "result.json"):
        run_id = control.submit(make_app(folder / APP, order.config))
    superlink, app = (server[0], server[1]()) if server else (None, None)
    first = start if began is None else began
    pulse = Pulse(control, run_id, processes, superlink, run.path / EVENTS_FILE, first, gate, console, app)
    try:
        return watch(pulse, run, start, order.after)
    except BaseException as error:  # Ctrl-C, or SIGTERM and SIGHUP as `Processes` raises them
        if not isinstance(error, FedloomError):
            console.print(f"\nstopping; {how_to_continue(run)}", highlight=False, markup=False)
        if server is None:  # else it ends with this process
            with suppress(FedloomError):
                control.stop(run_id)
        raise


def _size(run: RunDirectory) -> int:
    events = run.path / EVENTS_FILE
    return events.stat().st_size if events.exists() else 0


@contextmanager
def _set_aside(result: Path) -> Iterator[None]:
    """Remove the result of a run to resume; restore it if the block fails."""
    before = result.read_bytes() if result.exists() else b""
    result.unlink(missing_ok=True)
    try:
        yield
    except BaseException:
        if before:
            write_file(result, before, overwrite=True)
        raise
