"""Starting the two halves of a federation: a SuperLink with a run on it, and clients that join."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from common.config.run import RunConfig
from common.errors import ConfigError, RunError
from deploy.bundle import make_app
from deploy.certificates import LOCAL_HOSTS, Certificates, as_told, make_authority, make_server_certificate, names_of
from deploy.control import Control
from deploy.files import write_file
from deploy.keys import make_node_key, public_path
from deploy.processes import Child, Processes
from deploy.superlink import SuperLinkSettings, flower_environment, start_superlink
from deploy.watch import Pulse, watch
from server.artifacts import RunDirectory
from server.events import Result


@dataclass(frozen=True)
class ClientSpec:
    """A client process to start on this machine.

    Args:
        name: Public.
        task: What its data are of.
        data: Their source.
        home: Folder of its key and log.
        shard: `k/K`, the k-th of K parts of the data.
        state: Where its private state is kept; None for below `home`.
        source: What its data were dealt from; empty for made data.
        dialect: Options of `join` that tell how its own table is written.
    """

    name: str
    task: str
    data: str
    home: Path
    shard: str = ""
    state: Path | None = None
    source: str = ""
    dialect: Sequence[str] = ()


def certificates(folder: Path, hosts: Sequence[str] = ()) -> Certificates:
    """The server's certificates in `folder`, made if missing.

    Raises:
        ConfigError: They are made for other hosts.
    """
    files = Certificates(folder)
    if not files.ca.exists():
        make_authority(folder)
    if not files.server.exists():
        return make_server_certificate(folder, hosts)
    known = names_of(files)
    if strangers := [host for host in hosts if as_told(host) not in known]:
        names = " ".join(f"--name {name}" for name in (*known, *strangers) if name not in LOCAL_HOSTS)
        raise ConfigError(f"{files.server} is not made for '{strangers[0]}': say fedloom keys server --renew {names}")
    return files


def start_client(
    processes: Processes, client: ClientSpec, server: str, ca: Path, policy: Path | None, patience: float
) -> Path:
    """Start a resident client with a key of its own, made in its own folder; returns the public key's file.

    `patience`: seconds that it waits to be admitted.
    """
    key = client.home / "node.key"
    if not key.exists():
        make_node_key(key)
    command: list[str | Path] = [sys.executable, "-m", "deploy.cli", "join"]
    command += ["--server", server, "--ca", ca, "--key", key]
    command += ["--name", client.name, "--task", client.task, "--data", client.data]
    command += ["--state-dir", client.state or client.home / "state"]
    command += ["--shard", client.shard] if client.shard else []
    command += client.dialect
    command += ["--policy", policy] if policy else []
    command += ["--patience", f"{patience:g}"]
    log = client.home / "client.log"
    processes.start(client.name, command, log=log, environment=flower_environment({"OMP_NUM_THREADS": "1"}))
    return public_path(key)


@dataclass(frozen=True)
class Order:
    """A run to start: its configuration, where it writes, who may take part.

    Args:
        config: The run.
        runs: Folder of run folders.
        keys: Public keys to admit before it starts.
        nodes: Folder of public keys; one that appears there later is admitted too.
    """

    config: RunConfig
    runs: Path
    keys: Sequence[Path] = ()
    nodes: Path | None = None


def train(processes: Processes, superlink: SuperLinkSettings, order: Order, console: Console) -> Result:
    """Start a SuperLink and a run on it, and watch it to the end."""
    server = start_superlink(processes, superlink)
    return submit(processes, superlink.folder, control_of(superlink), order, console, server)


def control_of(superlink: SuperLinkSettings) -> Control:
    """The Control API of a SuperLink on this machine."""
    ca = superlink.certificates.ca if superlink.certificates else None
    return Control(superlink.control_address, ca, superlink.folder / "control")


def submit(
    processes: Processes, folder: Path, control: Control, order: Order, console: Console, server: Child | None = None
) -> Result:
    """Start a run on a SuperLink that already serves, and watch it to the end; `folder` is for this command's files."""
    known = set(order.nodes.glob("*.pub")) if order.nodes else set()
    control.register_all(sorted({*order.keys, *known}))
    run = RunDirectory(order.runs, order.config.run_id)
    metrics = run.path / "metrics.jsonl"
    start = metrics.stat().st_size if metrics.exists() else 0
    with _set_aside(run.path / "result.json"):
        run_id = control.submit(make_app(folder / "app", order.config), {})
    pulse = Pulse(control, run_id, processes, server, metrics, start, order.nodes, console, known)
    try:
        return watch(pulse, run, server.log if server else None, console)
    except BaseException as error:  # Ctrl-C, or SIGTERM and SIGHUP as `Processes` has them
        if not isinstance(error, RunError):
            console.print(f"\nstopping; go on with --resume {order.config.run_id}", highlight=False, markup=False)
        if server is None:  # else it ends with us
            with suppress(RunError):
                control.stop(run_id)
        raise


@contextmanager
def _set_aside(result: Path) -> Iterator[None]:
    """Without the result of a run that is to go on; it comes back if that fails."""
    before = result.read_bytes() if result.exists() else b""
    result.unlink(missing_ok=True)
    try:
        yield
    except BaseException:
        if before:
            write_file(result, before, overwrite=True)
        raise
