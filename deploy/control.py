"""Control of a SuperLink: register nodes; start, watch and stop runs."""

import json
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from common.errors import ConfigError, ConnectError, FedloomError, RunError
from common.node_keys import NodeKey, from_pem, to_pem
from common.options import leaves
from deploy.files import write_file
from deploy.keys import load_public_key
from deploy.superlink import flower_environment, flower_program

RunConfig = Mapping[str, bool | int | float | str]
CONNECTION = "fedloom"
CALL_SECONDS = 120.0  # seconds
UNREACHABLE = "Connection to the SuperLink is unavailable"
SILENT = "no SuperLink answers"
CHATTER = ("Using SuperLink", "Flower App configuration warnings", "- Recommended property")
"""Beginnings of lines that Flower's command prints before its message."""


class Control:
    """Control API of a SuperLink; runs are started by Flower's command with a private `FLWR_HOME`.

    Args:
        address: `host:port` of the Control API.
        ca: File of the certificate authority; None for an unencrypted server.
        home: Separate folder for Flower's configuration, which is written here.
    """

    def __init__(self, address: str, ca: Path | None, home: Path) -> None:
        self._address, self._ca, self._home = address, ca, home
        security = {"insecure": True} if ca is None else {"root-certificates": str(ca.resolve())}
        connection = {"address": address, **security}
        config = {"superlink": {"default": CONNECTION, CONNECTION: connection}}
        write_file(home / "config.toml", tomli_w.dumps(config).encode(), overwrite=True)

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
        unknown = sorted(run_config.keys() - _declared(app))
        if unknown:
            raise ConfigError(f"{app / 'pyproject.toml'} declares no run configuration '{unknown[0]}'")
        overrides = self._home / "run-config.toml"
        write_file(overrides, tomli_w.dumps(dict(run_config)).encode(), overwrite=True)
        answer = self._flwr("run", str(app), CONNECTION, "--run-config", str(overrides))
        if answer.get("success"):
            return int(answer["run-id"])
        raise self._error("cannot start the run", answer)

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
        """Call a method of the Control API in this process; a command of `flwr` takes over a second."""
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

    def _error(self, task: str, answer: Mapping[str, Any]) -> FedloomError:
        fault = self._fault(answer)
        kind = ConnectError if fault.startswith(SILENT) else RunError
        return kind(f"{task}: {fault}")

    def _fault(self, answer: Mapping[str, Any]) -> str:
        """Return the error message of Flower's command without its greeting and its advice."""
        text = str(answer.get("error-message") or answer)
        if UNREACHABLE in text:
            return f"{SILENT} at {self._address}; check --control and --ca"
        lines = (line.strip() for line in text.splitlines())
        return " ".join(line for line in lines if line and not line.startswith(CHATTER)) or "no reason given"

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        command = [str(flower_program("flwr")), *arguments, "--format", "json"]
        environment = flower_environment({"FLWR_HOME": str(self._home)})
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=CALL_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConnectError(
                f"the SuperLink at {self._address} did not answer `flwr {arguments[0]}` within {CALL_SECONDS:.0f} s"
            ) from None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return {"error-message": (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"}
        return answer if isinstance(answer, dict) else {"error-message": done.stdout}


def _declared(app: Path) -> set[str]:
    config = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"].get("config", {})
    return {key for key, _ in leaves(config, "")}
