"""Control of a SuperLink: register and admit nodes; pack, start, watch and stop runs.

`flwr run` accepts declared options only, and bundles the whole folder. Each run therefore has its own folder, built
from the installed packages. Clients receive none of it: they run their own code.
"""

import hashlib
import importlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w
from rich.console import Console

import client
import common
import server
from common.config.parse import flatten
from common.config.run import RunConfig
from common.errors import ConfigError, ConnectError, FedloomError, RunError
from common.hosts import find_proxy, without_proxies
from common.node_names import NodeKey, from_pem, to_pem
from deploy.keys.nodes import REVOKED, list_nodes, load_public_key, revoked_keys

FlowerConfig = Mapping[str, bool | int | float | str]
SILENT = "no SuperLink answers"


def import_apis() -> None:
    """Import what submits a run, which takes over a second; Flower needs a home folder as it is imported."""
    try:
        Path.home()
    except RuntimeError:
        os.environ.setdefault("FLWR_HOME", str(Path(".fedloom", "flwr").absolute()))
    for module in ("flwr.cli.build", "flwr.proto.control_pb2", "flwr.supercore.control"):
        importlib.import_module(module)


class Control:
    """Control API of a SuperLink, called in this process: a command of `flwr` takes over a second.

    Each method raises ConnectError if the server does not answer, and RunError if it refuses.

    Args:
        address: `host:port` of the Control API.
        ca: File of the certificate authority; None for an unencrypted server.
    """

    def __init__(self, address: str, ca: Path | None) -> None:
        self._address, self._ca = address, ca

    def register(self, public_key: Path) -> int | None:
        """Register a public key; return the node's new id, or None if the key was registered before.

        Raises:
            ConfigError: The file holds no public key.
        """
        from flwr.proto.control_pb2 import RegisterNodeRequest

        key = to_pem(load_public_key(public_key))
        try:
            return int(
                self._call(f"cannot register {public_key}", "RegisterNode", RegisterNodeRequest(public_key=key)).node_id
            )
        except RunError as error:
            if "already in use" in str(error):
                return None
            raise

    def unregister(self, key: NodeKey) -> bool:
        """Remove the node of a public key, which stays refused; return False if no node has the key."""
        from flwr.proto.control_pb2 import ListNodesRequest, UnregisterNodeRequest

        found = self._call("cannot list nodes", "ListNodes", ListNodesRequest()).nodes_info
        nodes = [one.node_id for one in found if one.status != "unregistered" and from_pem(one.public_key) == key]
        for node in nodes:
            self._call(f"cannot unregister node {node}", "UnregisterNode", UnregisterNodeRequest(node_id=node))
        return bool(nodes)

    def submit(self, app: Path, run_config: FlowerConfig | None = None) -> int:
        """Start a run of the Flower app in folder `app`; return its id."""
        import_apis()
        from flwr.cli.build import build_fab_from_disk
        from flwr.common.serde import fab_to_proto, user_config_to_proto
        from flwr.proto.control_pb2 import StartRunRequest
        from flwr.supercore.fab import Fab

        content = build_fab_from_disk(app)
        bundle = fab_to_proto(Fab(hashlib.sha256(content).hexdigest(), content, {}))
        request = StartRunRequest(fab=bundle, override_config=user_config_to_proto(dict(run_config or {})))
        return int(self._call("cannot start the run", "StartRun", request).run_id)

    def status(self, run_id: int) -> str:
        """Return the status of a run.

        It is `pending`, `starting`, `running`, `finished:completed`, `finished:failed` or `finished:stopped`.

        Raises:
            RunError: There is no such run.
        """
        from flwr.proto.control_pb2 import ListRunsRequest

        runs = self._call(f"cannot query run {run_id}", "ListRuns", ListRunsRequest(run_id=run_id)).run_dict
        if run_id not in runs:
            raise RunError(f"cannot query run {run_id}: no such run")
        status = runs[run_id].status
        return ":".join(part for part in (status.status, status.sub_status) if part)

    def stop(self, run_id: int) -> None:
        """Stop a run."""
        from flwr.proto.control_pb2 import StopRunRequest

        self._call(f"cannot stop run {run_id}", "StopRun", StopRunRequest(run_id=run_id))

    def _call(self, task: str, method: str, request: Any) -> Any:
        """Call a method of the Control API."""
        import httpx
        from flwr.supercore.control import ControlHttpClient
        from flwr.supercore.error import FlowerError

        authority = self._ca.read_bytes() if self._ca else None
        host = self._address.rpartition(":")[0].strip("[]")
        with without_proxies(host):
            client = ControlHttpClient.from_server_address(self._address, self._ca is None, authority, ())
        try:
            return getattr(client, method)(request)
        except httpx.HTTPStatusError as error:
            found = FlowerError.from_json(error.response.text)
            raise RunError(f"{task}: {found.message if found else error.response.text[:200]}") from None
        except (httpx.HTTPError, ValueError):
            proxy = f" through the proxy of {used}" if (used := find_proxy(host)) else ""
            raise ConnectError(f"{task}: {SILENT} at {self._address}{proxy}; check --control and --ca") from None
        finally:
            client.close()


SEARCH_SECONDS = 2.0  # seconds between two searches for new and revoked keys
MAX_RETRY_SECONDS = 60.0  # maximum seconds until a key that failed is tried again


@dataclass
class Gate:
    """Keeper of the registered keys at a SuperLink; each call brings them up to date.

    The folder has public keys, with revoked ones below it. Files in `admitted` are registered already.
    """

    control: Control
    folder: Path
    console: Console
    admitted: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)
    faults: dict[Path, tuple[str, float, float]] = field(default_factory=dict)
    """Key that failed -> the reason, the time of its next attempt, and the pause before it."""
    searched: float = 0.0

    def __call__(self) -> None:
        """Register new keys and remove revoked ones, at most once in `SEARCH_SECONDS`."""
        if time.monotonic() < self.searched + SEARCH_SECONDS:
            return
        for path in sorted(set((self.folder / REVOKED).glob("*.pub")) - self.removed):
            self._attempt(path, self._remove)
        for path in sorted(set(self.folder.glob("*.pub")) - self.admitted):
            self._attempt(path, self._admit)
        self.searched = time.monotonic()

    def remove_revoked(self) -> None:
        """Remove the keys that were revoked while no server ran.

        Raises:
            RunError: The SuperLink refuses.
            ConnectError: The SuperLink does not answer.
        """
        for path, key in revoked_keys(self.folder).items():
            self.control.unregister(key)
            self.removed.add(path)

    def _admit(self, path: Path) -> None:
        self.control.register(path)
        self.admitted.add(path)
        self.console.print(f"admitted {self._name(path)}", highlight=False, markup=False)

    def _remove(self, path: Path) -> None:
        name = self._name(path)
        key = revoked_keys(self.folder).get(path)
        if key is None:
            raise RunError(f"{path} holds no public key; revoke the key of {path.name} again")
        was_registered = self.control.unregister(key)
        self.removed.add(path)
        if was_registered:
            self.console.print(f"removed {name}: its key was revoked", highlight=False, markup=False)

    def _name(self, path: Path) -> str:
        """Return the name of a key; without one, the name of its file."""
        try:
            return next((e.name for e in list_nodes(self.folder) if e.file == path and e.name), path.name)
        except ConfigError:  # the file of names is being edited
            return path.name

    def _attempt(self, path: Path, step: Callable[[Path], None]) -> None:
        """Take a step with a key; after a failure, try again with exponential back-off."""
        reason, at, pause = self.faults.get(path, ("", 0.0, SEARCH_SECONDS / 2))
        if time.monotonic() < at:
            return
        try:
            step(path)
        except FedloomError as error:  # the file may be incomplete or the machine busy
            if str(error) != reason:
                self.console.print(str(error), style="yellow", markup=False, soft_wrap=True)
            pause = min(2 * pause, MAX_RETRY_SECONDS)
            self.faults[path] = str(error), time.monotonic() + pause, pause


PACKAGES = (common, server, client)


def make_app(folder: Path, config: RunConfig) -> Path:
    """Write the app of one run into `folder`, replacing its content; return the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for package in PACKAGES:
        [source] = package.__path__
        shutil.copytree(source, folder / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("*"):  # copies have the modes of the installed packages
        path.chmod(0o700 if path.is_dir() else 0o600)
    (folder / "pyproject.toml").write_text(tomli_w.dumps(_pyproject(config)))
    return folder


def _pyproject(config: RunConfig) -> dict[str, object]:
    app = {
        "publisher": "fedloom",
        "fab-include": ["**/*.py", "**/*.json", "client/**/*.toml"],
        "components": {"serverapp": "server.app:app", "clientapp": "client.app:app"},
        "config": flatten(config),
    }
    project: dict[str, object] = {"name": "fedloom", "version": version("fedloom"), "license": "Apache-2.0"}
    project |= {"description": f"fedloom run {config.run_id}", "dependencies": []}
    return {"project": project, "tool": {"flwr": {"app": app}}}
