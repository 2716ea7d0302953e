"""What `client/node/fleet.py` relies on inside Flower 1.39, and the whole way through a real SuperLink."""

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flwr
import pytest
from flwr.client.grpc_rere_client.node_auth_client_interceptor import NodeAuthClientInterceptor
from flwr.common.serde import message_to_proto, run_from_proto
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2, run_pb2
from flwr.proto.fleet_pb2_grpc import FleetStub
from flwr.supercore.inflatable import inflatable_object
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supercore.runtime_version_compatibility import RuntimeVersionMetadata

from benchmarks.speed.noop_app.client_app import app
from client.node.failures import NotAdmittedError, Server
from client.node.resident import run_resident
from common.errors import ConnectError
from deploy.certificates import Certificates, make_authority, make_server_certificate
from deploy.control import Control
from deploy.keys import load_private_key, make_node_key, public_path
from deploy.processes import Child, Processes, free_port
from deploy.superlink import SuperLinkSettings, start_superlink

ROOT = Path(__file__).resolve().parents[2]
NOOP = ROOT / "benchmarks" / "speed" / "noop_app"


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_flower_is_the_version_this_was_written_for() -> None:
    assert flwr.__version__ == "1.39.0"


def test_signatures() -> None:
    assert _parameters(NodeAuthClientInterceptor) == ["private_key", "public_key"]
    assert _parameters(inflate_object_from_contents)[:2] == ["object_id", "object_contents"]
    for function in (inflatable_object.get_all_nested_objects, inflatable_object.get_object_tree):
        assert _parameters(function) == ["obj"]
    assert _parameters(inflatable_object.iterate_object_tree) == ["tree"]
    assert _parameters(inflatable_object.no_object_id_recompute) == []
    assert [len(_parameters(f)) for f in (generate_key_pairs, public_key_to_bytes)] == [0, 1]
    assert [len(_parameters(f)) for f in (message_to_proto, run_from_proto)] == [1, 1]
    assert _parameters(RuntimeVersionMetadata.from_local_component)[0] == "component_name"


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (fleet_pb2.RegisterNodeFleetRequest, {"public_key"}),
        (fleet_pb2.ActivateNodeRequest, {"public_key", "heartbeat_interval"}),
        (fleet_pb2.ActivateNodeResponse, {"node_id"}),
        (fleet_pb2.DeactivateNodeRequest, {"node_id"}),
        (fleet_pb2.UnregisterNodeFleetRequest, {"node_id"}),
        (fleet_pb2.PullMessagesRequest, {"node"}),
        (fleet_pb2.PullMessagesResponse, {"messages_list", "message_object_trees"}),
        (
            fleet_pb2.PushMessagesRequest,
            {"node", "messages_list", "message_object_trees", "clientapp_runtime_list"},
        ),
        (fleet_pb2.PushMessagesResponse, {"objects_to_push", "session_id"}),
        (heartbeat_pb2.SendNodeHeartbeatRequest, {"node", "heartbeat_interval"}),
        (message_pb2.PullObjectRequest, {"node", "run_id", "object_id"}),
        (message_pb2.PullObjectResponse, {"object_found", "object_available", "object_content"}),
        (message_pb2.PushObjectRequest, {"node", "run_id", "object_id", "object_content", "session_id"}),
        (message_pb2.ConfirmMessageReceivedRequest, {"node", "run_id", "message_object_id"}),
        (run_pb2.GetRunRequest, {"node", "run_id"}),
    ],
)
def test_wire_fields(message: Any, fields: set[str]) -> None:
    assert fields <= {field.name for field in message.DESCRIPTOR.fields}


def test_calls_of_the_fleet_api() -> None:
    service = fleet_pb2.DESCRIPTOR.services_by_name["Fleet"]
    used = {"RegisterNode", "ActivateNode", "DeactivateNode", "UnregisterNode", "SendNodeHeartbeat", "GetRun"}
    used |= {"PullMessages", "PushMessages", "PullObject", "PushObject", "ConfirmMessageReceived"}
    assert used <= {method.name for method in service.methods}
    assert _parameters(FleetStub) == ["channel"]


# --- a real SuperLink: TLS, node authentication, SQLite --------------------------------------------


@dataclass
class Federation:
    """A running SuperLink and what one needs to join it."""

    settings: SuperLinkSettings
    certificates: Certificates
    control: Control
    processes: Processes
    superlink: Child

    def server(self, key: Path) -> Server:
        """How the owner of a key joins."""
        return Server(self.settings.address, self.certificates.ca.read_bytes(), load_private_key(key))

    def play(self, rounds: int) -> int:
        """Play rounds of the no-op app with one node; how many were played."""
        result = self.settings.folder / f"result-{time.monotonic_ns()}.json"
        config = {"nodes": 1, "rounds": rounds, "polling": "fedloom", "result": str(result)}
        run = self.control.submit(NOOP, config)
        end = time.monotonic() + 60
        while not (status := self.control.status(run)).startswith("finished"):
            assert time.monotonic() < end, self.settings.log.read_text()[-2000:]
        assert status == "finished:completed", self.settings.log.read_text()[-2000:]
        return len(json.loads(result.read_text()))


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("federation")
    make_authority(folder)
    certificates = make_server_certificate(folder)
    settings = SuperLinkSettings(
        folder,
        certificates,
        authenticate=True,
        database=True,
        port=free_port(),
        control_port=free_port(),
        environment={"PYTHONPATH": str(ROOT)},
    )
    with Processes() as processes:
        superlink = start_superlink(processes, settings)
        control = Control(settings.control_address, certificates.ca, folder / "cli")
        make_node_key(folder / "node.key")
        control.register(public_path(folder / "node.key"))
        yield Federation(settings, certificates, control, processes, superlink)


@pytest.fixture
def node(federation: Federation) -> Iterator[list[str]]:
    """A resident client in a thread; yields its events."""
    stop, events = threading.Event(), list[str]()
    server = federation.server(federation.settings.folder / "node.key")
    client = threading.Thread(
        target=run_resident, args=(app, server), kwargs={"stop": stop, "on_event": events.append}, daemon=True
    )
    client.start()
    yield events
    stop.set()
    client.join(5)
    assert not client.is_alive()


@pytest.mark.system
def test_messages_go_all_the_way_round(federation: Federation, node: list[str]) -> None:
    assert federation.play(rounds=3) == 3


@pytest.mark.system
def test_a_client_outlives_its_server(federation: Federation, node: list[str]) -> None:
    assert federation.play(rounds=1) == 1
    federation.processes.stop(federation.superlink)
    end = time.monotonic() + 10
    while not any("no server at" in event for event in node):
        assert time.monotonic() < end
        time.sleep(0.05)
    federation.superlink = start_superlink(federation.processes, federation.settings)
    assert federation.play(rounds=2) == 2


@pytest.mark.system
def test_an_unregistered_key_is_refused(federation: Federation, tmp_path: Path) -> None:
    make_node_key(tmp_path / "stranger.key")
    with pytest.raises(NotAdmittedError, match="register its public key"):
        run_resident(app, federation.server(tmp_path / "stranger.key"), stop=threading.Event(), patience=0.5)


@pytest.mark.system
def test_a_guest_is_refused(federation: Federation) -> None:
    guest = Server(federation.settings.address, federation.certificates.ca.read_bytes())
    with pytest.raises(ConnectError, match="registered keys only"):
        run_resident(app, guest, stop=threading.Event())


@pytest.mark.system
def test_a_wrong_authority_is_refused(federation: Federation, tmp_path: Path) -> None:
    other = make_authority(tmp_path)
    key = load_private_key(federation.settings.folder / "node.key")
    with pytest.raises(ConnectError, match="not signed by the given CA"):
        run_resident(app, Server(federation.settings.address, other.ca.read_bytes(), key), stop=threading.Event())


@pytest.mark.system
@pytest.mark.parametrize("present", [True, False])
def test_a_client_leaves_within_two_seconds_of_sigterm(federation: Federation, present: bool) -> None:
    address = federation.settings.address if present else f"127.0.0.1:{free_port()}"
    folder = federation.settings.folder
    command = [
        sys.executable,
        "-u",
        str(NOOP / "resident.py"),
        address,
        str(folder / "ca.pem"),
        str(folder / "node.key"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as client:
        assert client.stdout is not None
        assert ("connected" if present else "retrying") in client.stdout.readline()
        time.sleep(0.5)
        start = time.monotonic()
        client.send_signal(signal.SIGTERM)
        assert client.wait(10) == 0
        assert time.monotonic() - start < 2
