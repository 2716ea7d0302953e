"""Fleet API in this process, scripted by the tests."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from flwr.app import Message, Metadata, RecordDict
from flwr.app.message import make_message, remove_content_from_message
from flwr.common.serde import message_to_proto, user_config_to_proto
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2, run_pb2
from flwr.proto.fleet_pb2_grpc import FleetServicer, add_FleetServicer_to_server
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

NODE_ID, RUN_ID = 7, 99


class FakeFleet(FleetServicer):
    """One node, one run, a queue of messages and a store of objects.

    Tests set: `late` (objects that are unavailable that many times), `is_registered` (of the node), `running` (of the run),
    `fail_pulls` (number of failing pulls of objects), `hang` (polls hang until it is set), `held` (the key is connected).
    """

    def __init__(self) -> None:
        self.queue: list[Message] = []
        self.store: dict[str, bytes] = {}
        self.replies: list[Message] = []
        self.calls: list[str] = []
        self.late: dict[str, int] = {}
        self.is_registered, self.running, self.held = True, True, False
        self.fail_pulls = 0
        self.hang: threading.Event | None = None
        self.confirmed: list[str] = []
        self.address = ""
        self._pushed: message_pb2.ObjectTree | None = None
        self._received: dict[str, bytes] = {}

    def post(self, content: RecordDict, message_type: str = "train") -> Message:
        """Put a message into the node's queue."""
        metadata = Metadata(
            run_id=RUN_ID,
            message_id="",
            src_node_id=1,
            dst_node_id=NODE_ID,
            reply_to_message_id="",
            group_id="",
            created_at=2e9,
            ttl=1000.0,
            message_type=message_type,
        )
        message = make_message(metadata, content=content)
        message.metadata.__dict__["_message_id"] = message.object_id
        self.store |= {identity: thing.deflate() for identity, thing in get_all_nested_objects(message).items()}
        self.queue.append(message)
        return message

    def _enter(self, name: str, context: Any) -> None:
        self.calls.append(name)
        if not self.is_registered:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid node ID")

    def RegisterNode(self, request: Any, context: Any) -> Any:
        self.calls.append("RegisterNode")
        return fleet_pb2.RegisterNodeFleetResponse(node_id=NODE_ID)

    def ActivateNode(self, request: Any, context: Any) -> Any:
        self.calls.append("ActivateNode")
        if self.held:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, '{"code": 2004, "detail": ""}')
        self.is_registered = True
        return fleet_pb2.ActivateNodeResponse(node_id=NODE_ID)

    def DeactivateNode(self, request: Any, context: Any) -> Any:
        self._enter("DeactivateNode", context)
        self.held = False
        return fleet_pb2.DeactivateNodeResponse()

    def UnregisterNode(self, request: Any, context: Any) -> Any:
        self._enter("UnregisterNode", context)
        return fleet_pb2.UnregisterNodeFleetResponse()

    def SendNodeHeartbeat(self, request: Any, context: Any) -> Any:
        self._enter("SendNodeHeartbeat", context)
        return heartbeat_pb2.SendNodeHeartbeatResponse(success=True)

    def GetRun(self, request: Any, context: Any) -> Any:
        self._enter("GetRun", context)
        run = run_pb2.Run(run_id=request.run_id, override_config=user_config_to_proto({"rounds": 3}))
        return run_pb2.GetRunResponse(run=run)

    def PullMessages(self, request: Any, context: Any) -> Any:
        self._enter("PullMessages", context)
        if self.hang is not None:
            self.hang.wait(30)
        if not self.queue:
            return fleet_pb2.PullMessagesResponse()
        message = self.queue.pop(0)
        proto = message_to_proto(remove_content_from_message(message))
        return fleet_pb2.PullMessagesResponse(messages_list=[proto], message_object_trees=[get_object_tree(message)])

    def PullObject(self, request: Any, context: Any) -> Any:
        self._enter("PullObject", context)
        identity = request.object_id
        if self.fail_pulls:
            self.fail_pulls -= 1
            context.abort(grpc.StatusCode.INTERNAL, "out of order")
        if identity not in self.store:
            return message_pb2.PullObjectResponse(object_found=False)
        if self.late.get(identity, 0) > 0:
            self.late[identity] -= 1
            return message_pb2.PullObjectResponse(object_found=True, object_available=False)
        content = self.store[identity]
        return message_pb2.PullObjectResponse(object_found=True, object_available=True, object_content=content)

    def ConfirmMessageReceived(self, request: Any, context: Any) -> Any:
        self.confirmed.append(request.message_object_id)
        return message_pb2.ConfirmMessageReceivedResponse()

    def PushMessages(self, request: Any, context: Any) -> Any:
        self._enter("PushMessages", context)
        if not self.running:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "finished")
        self._pushed, self._received = request.message_object_trees[0], {}
        wanted = _identities(self._pushed)
        return fleet_pb2.PushMessagesResponse(objects_to_push=wanted, session_id="session")

    def PushObject(self, request: Any, context: Any) -> Any:
        self._enter("PushObject", context)
        assert request.session_id == "session"
        self._received[request.object_id] = request.object_content
        if self._pushed is not None and set(_identities(self._pushed)) == set(self._received):
            reply = inflate_object_from_contents(self._pushed.object_id, dict(self._received))
            assert isinstance(reply, Message)
            self.replies.append(reply)
        return message_pb2.PushObjectResponse(stored=True)


def _identities(tree: message_pb2.ObjectTree) -> list[str]:
    return [tree.object_id, *(identity for child in tree.children for identity in _identities(child))]


@pytest.fixture
def fake() -> Iterator[FakeFleet]:
    fake = FakeFleet()
    server = grpc.server(ThreadPoolExecutor(8))
    add_FleetServicer_to_server(fake, server)
    fake.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield fake
    if fake.hang is not None:
        fake.hang.set()
    server.stop(0).wait()
