"""Starting the two halves of a federation: a SuperLink with a run on it, and clients that join."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from common.config import RunConfig, Task
from deploy.bundle import make_app
from deploy.certificates import Certificates, make_authority, make_server_certificate
from deploy.control import Control
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
    """

    name: str
    task: Task
    data: str
    home: Path
    shard: str = ""
    state: Path | None = None
    source: str = ""


def certificates(folder: Path, hosts: Sequence[str] = ()) -> Certificates:
    """The server's certificates in `folder`, made if missing."""
    files = Certificates(folder)
    if not files.ca.exists():
        make_authority(folder)
    if not files.server.exists():
        make_server_certificate(folder, hosts)
    return files


def start_client(processes: Processes, client: ClientSpec, server: str, ca: Path, policy: Path | None) -> Path:
    """Start a resident client with a key of its own, made in its own folder; returns the public key's file."""
    key = client.home / "node.key"
    if not key.exists():
        make_node_key(key)
    command: list[str | Path] = [sys.executable, "-m", "deploy.cli", "join"]
    command += ["--server", server, "--ca", ca, "--key", key]
    command += ["--name", client.name, "--task", client.task, "--data", client.data]
    command += ["--state-dir", client.state or client.home / "state"]
    command += ["--shard", client.shard] if client.shard else []
    command += ["--policy", policy] if policy else []
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
    if order.config.resume:
        (run.path / "result.json").unlink(missing_ok=True)
    run_id = control.submit(make_app(folder / "app", order.config), {})
    pulse = Pulse(control, run_id, processes, server, metrics, start, order.nodes, console, known)
    try:
        return watch(pulse, run, server.log if server else None, console)
    except KeyboardInterrupt:
        console.print(f"\nstopping; go on with --resume {order.config.run_id}", highlight=False, markup=False)
        if server is None:  # else it ends with us
            control.stop(run_id)
        raise
