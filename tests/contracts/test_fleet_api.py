"""Parts of Flower 1.39 that `client/node/flower.py` uses."""

import inspect
from collections.abc import Callable
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

from client.node.flower import VERSION_METADATA


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_flower_has_the_expected_version() -> None:
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
    assert RuntimeVersionMetadata.from_local_component("SuperNode").as_metadata() == VERSION_METADATA


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
