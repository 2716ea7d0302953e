"""Control of a SuperLink: register nodes; start, watch and stop runs."""

import hashlib
import importlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import ConfigError, ConnectError, RunError
from common.node_keys import NodeKey, from_pem, to_pem
from common.options import leaves
from deploy.keys import load_public_key

RunConfig = Mapping[str, bool | int | float | str]
SILENT = "no SuperLink answers"


def import_apis() -> None:
    """Import what submits a run, which takes over a second."""
    for module in ("flwr.cli.build", "flwr.proto.control_pb2", "flwr.supercore.control"):
        importlib.import_module(module)


class Control:
    """Control API of a SuperLink, called in this process: a command of `flwr` takes over a second.

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
            ConnectError: The server does not answer.
            RunError: The server refuses.
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
        """Remove the node of a public key, which stays refused; return False if no node has the key.

        Raises:
            RunError: The server refuses.
            ConnectError: The server does not answer.
        """
        from flwr.proto.control_pb2 import ListNodesRequest, UnregisterNodeRequest

        found = self._call("cannot list nodes", "ListNodes", ListNodesRequest()).nodes_info
        nodes = [one.node_id for one in found if one.status != "unregistered" and from_pem(one.public_key) == key]
        for node in nodes:
            self._call(f"cannot unregister node {node}", "UnregisterNode", UnregisterNodeRequest(node_id=node))
        return bool(nodes)

    def submit(self, app: Path, run_config: RunConfig) -> int:
        """Start a run of the Flower app in folder `app`; return its id.

        Raises:
            ConfigError: A key is missing in the app's `[tool.flwr.app.config]`; Flower would refuse it.
            ConnectError: The server does not answer.
            RunError: The server refuses.
        """
        from flwr.cli.build import build_fab_from_disk
        from flwr.common.serde import fab_to_proto, user_config_to_proto
        from flwr.proto.control_pb2 import StartRunRequest
        from flwr.supercore.fab import Fab

        unknown = sorted(run_config.keys() - _declared(app))
        if unknown:
            raise ConfigError(f"{app / 'pyproject.toml'} declares no run configuration '{unknown[0]}'")
        content = build_fab_from_disk(app)
        bundle = fab_to_proto(Fab(hashlib.sha256(content).hexdigest(), content, {}))
        request = StartRunRequest(fab=bundle, override_config=user_config_to_proto(dict(run_config)))
        return int(self._call("cannot start the run", "StartRun", request).run_id)

    def status(self, run_id: int) -> str:
        """Return the status of a run.

        It is `pending`, `starting`, `running`, `finished:completed`, `finished:failed` or `finished:stopped`.

        Raises:
            ConnectError: The server does not answer.
            RunError: The server refuses, or there is no such run.
        """
        from flwr.proto.control_pb2 import ListRunsRequest

        runs = self._call(f"cannot query run {run_id}", "ListRuns", ListRunsRequest(run_id=run_id)).run_dict
        if run_id not in runs:
            raise RunError(f"cannot query run {run_id}: no such run")
        status = runs[run_id].status
        return ":".join(part for part in (status.status, status.sub_status) if part)

    def stop(self, run_id: int) -> None:
        """Stop a run.

        Raises:
            ConnectError: The server does not answer.
            RunError: The server refuses.
        """
        from flwr.proto.control_pb2 import StopRunRequest

        self._call(f"cannot stop run {run_id}", "StopRun", StopRunRequest(run_id=run_id))

    def _call(self, task: str, method: str, request: Any) -> Any:
        """Call a method of the Control API."""
        import httpx
        from flwr.supercore.control import ControlHttpClient
        from flwr.supercore.error import FlowerError

        authority = self._ca.read_bytes() if self._ca else None
        client = ControlHttpClient.from_server_address(self._address, self._ca is None, authority, ())
        try:
            return getattr(client, method)(request)
        except httpx.HTTPStatusError as error:
            found = FlowerError.from_json(error.response.text)
            raise RunError(f"{task}: {found.message if found else error.response.text[:200]}") from None
        except (httpx.HTTPError, ValueError):
            raise ConnectError(f"{task}: {SILENT} at {self._address}; check --control and --ca") from None
        finally:
            client.close()


def _declared(app: Path) -> set[str]:
    config = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"].get("config", {})
    return {key for key, _ in leaves(config, "")}
