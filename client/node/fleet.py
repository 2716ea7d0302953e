"""The client's line to the server: Flower's Fleet API over gRPC.

The only file of the client that touches Flower's internals; `tests/contracts/test_fleet_api.py` pins what it uses. It
speaks the generated gRPC stub rather than Flower's own connection wrapper, which retries for ever, ends the process on
failure and swallows exceptions. No code ever comes down this line: the stub's GetFab is not called.
"""

import math
import threading
import time
from types import TracebackType
from typing import Self

import grpc
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.client.grpc_rere_client.node_auth_client_interceptor import NodeAuthClientInterceptor
from flwr.common.serde import message_to_proto, run_from_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
    RegisterNodeFleetRequest,
    UnregisterNodeFleetRequest,
)
from flwr.proto.fleet_pb2_grpc import FleetStub
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, ObjectTree, PullObjectRequest, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.proto.run_pb2 import GetRunRequest
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supercore.runtime_version_compatibility import RuntimeVersionMetadata

from client.node.channel import CALL_DEADLINE, LAST_CALL, Channel
from client.node.failures import RunOverError, Server, ServerAwayError
from common.errors import FedloomError, WireError

HEARTBEAT_PROMISE = 10.0  # seconds, the least Flower takes; a silent node counts as gone after twice that
HEARTBEAT_EVERY = 5.0  # seconds
LAST_SEND = 5.0  # seconds to get a finished reply out once the client was asked to stop: it cost privacy budget
FETCHED = 1.0  # seconds from the last reply to leaving, for the server, which asks ten times a second, to fetch it
PULL_FIRST_RETRY, PULL_LONGEST_RETRY = 0.01, 0.2  # seconds, for content that is announced but not there yet


class Fleet:
    """A connected node; a context manager that joins on entry and leaves on exit.

    Args:
        server: Where to connect.
        stop: Set when the client must leave: calls in flight then end soon.

    Every method raises what `failures.explain` returns: ServerAwayError, after which the same call may succeed later,
    NotAdmittedError, after which one must join anew, RunOverError, or ConnectError for good.
    """

    def __init__(self, server: Server, stop: threading.Event) -> None:
        self._server, self._stop, self._left = server, stop, threading.Event()
        self._guest = server.key is None
        key = generate_key_pairs()[0] if server.key is None else server.key
        self._public_key = public_key_to_bytes(key.public_key())
        # the version goes along as metadata: Flower's interceptor for it makes every call a blocking one
        version = RuntimeVersionMetadata.from_local_component("SuperNode").as_metadata()
        self._line = Channel(server, stop, NodeAuthClientInterceptor(key, key.public_key()), version)
        self._stub = FleetStub(self._line.channel)
        self._node = Node()
        self._confirmation: object = None
        self._announced: tuple[int, ObjectTree] | None = None
        self._sent = -math.inf
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        """Join the federation and keep the heart beating."""
        try:
            if self._guest:
                self._line.call(self._stub.RegisterNode, RegisterNodeFleetRequest(public_key=self._public_key))
            request = ActivateNodeRequest(public_key=self._public_key, heartbeat_interval=HEARTBEAT_PROMISE)
            self._node = Node(node_id=self._line.call(self._stub.ActivateNode, request).node_id)
        except BaseException:
            self._line.close()
            raise
        self._heart.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Tell the server that this node leaves, if it still listens, once it has had time to fetch the last reply."""
        self._left.set()
        time.sleep(max(0.0, self._sent + FETCHED - time.monotonic()))
        calls = [(self._stub.DeactivateNode, DeactivateNodeRequest(node_id=self.node_id))]
        calls += [(self._stub.UnregisterNode, UnregisterNodeFleetRequest(node_id=self.node_id))] if self._guest else []
        try:
            for method, request in calls:
                self._line.start(method, request, deadline=LAST_CALL).result()
        except grpc.RpcError:
            pass  # it will notice by the missing heartbeat
        finally:
            self._line.close()

    @property
    def node_id(self) -> int:
        """The id under which the server knows this node."""
        return int(self._node.node_id)

    def receive(self) -> Message | None:
        """The next message for this node with its content, or None."""
        if self._announced is None:
            answer = self._line.call(self._stub.PullMessages, PullMessagesRequest(node=self._node))
            if not answer.messages_list:
                return None
            self._announced = answer.messages_list[0].metadata.run_id, answer.message_object_trees[0]
        try:
            message = self._fetch(*self._announced)
        except ServerAwayError:
            raise  # it is announced only once: fetch it when the server is back
        except FedloomError:
            self._announced = None
            raise
        self._announced = None
        return message

    def send(self, reply: Message, seconds: float = 0.0) -> None:
        """Send a reply whose making took `seconds`; sending it again changes nothing.

        All objects leave at once: the server's app may ask for them from the moment the reply is announced, and Flower
        lets it wait a full second for one that is not there yet.
        """
        reply.metadata.__dict__["_message_id"] = reply.object_id
        run_id = reply.metadata.run_id
        with no_object_id_recompute():
            contents = {identity: thing.deflate() for identity, thing in get_all_nested_objects(reply).items()}
            request = PushMessagesRequest(
                node=self._node,
                messages_list=[message_to_proto(remove_content_from_message(reply))],
                message_object_trees=[get_object_tree(reply)],
                clientapp_runtime_list=[seconds],
            )
        answer = self._line.call(self._stub.PushMessages, request, last_call=LAST_SEND)
        wanted, session = set(answer.objects_to_push), answer.session_id
        objects = [
            PushObjectRequest(
                node=self._node, run_id=run_id, object_id=identity, object_content=content, session_id=session
            )
            for identity, content in contents.items()
            if identity in wanted
        ]
        self._line.call_all(self._stub.PushObject, objects, last_call=LAST_SEND)
        self._sent = time.monotonic()

    def run_config(self, run_id: int) -> dict[str, bool | float | int | str]:
        """What the run's owner has overridden in its configuration; nothing of the run's code is fetched."""
        answer = self._line.call(self._stub.GetRun, GetRunRequest(node=self._node, run_id=run_id))
        return dict(run_from_proto(answer.run).override_config)

    def _fetch(self, run_id: int, tree: ObjectTree) -> Message:
        root, parts = tree.object_id, [part.object_id for part in iterate_object_tree(tree)]
        contents = self._pull([root], run_id)  # the server's app uploads it last: then the parts are there, mostly
        contents |= self._pull([part for part in parts if part != root], run_id)
        confirmation = ConfirmMessageReceivedRequest(node=self._node, run_id=run_id, message_object_id=root)
        # lets the server forget it; nothing hangs on it, but gRPC cancels a call that nobody holds
        self._confirmation = self._line.start(self._stub.ConfirmMessageReceived, confirmation)
        try:
            message = inflate_object_from_contents(root, contents)
        except Exception as error:  # whatever the server has put there
            raise WireError(f"{self._server.address} sent something malformed ({type(error).__name__})") from error
        if not isinstance(message, Message):
            raise WireError(f"{self._server.address} sent a {type(message).__name__} in place of a message")
        message.metadata.__dict__["_message_id"] = root  # its own hash cannot be in its content
        return message

    def _pull(self, objects: list[str], run_id: int) -> dict[str, bytes]:
        """Contents of announced objects; asks again for those that are still on their way to the server."""
        contents: dict[str, bytes] = {}
        pause, end = PULL_FIRST_RETRY, time.monotonic() + CALL_DEADLINE
        while missing := [identity for identity in objects if identity not in contents]:
            requests = [PullObjectRequest(node=self._node, run_id=run_id, object_id=identity) for identity in missing]
            for identity, answer in zip(missing, self._line.call_all(self._stub.PullObject, requests), strict=True):
                if answer.object_available:
                    contents[identity] = answer.object_content
                elif not answer.object_found or time.monotonic() > end:
                    raise RunOverError("a message was announced, but its content is gone")
            if len(contents) < len(objects) and self._stop.wait(pause):
                raise ServerAwayError("asked to leave before a message had arrived")
            pause = min(2 * pause, PULL_LONGEST_RETRY)
        return contents

    def _beat(self) -> None:
        request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=HEARTBEAT_PROMISE)
        while not self._left.wait(HEARTBEAT_EVERY):
            try:
                self._line.start(self._stub.SendNodeHeartbeat, request, deadline=HEARTBEAT_EVERY).result()
            except (grpc.RpcError, ValueError):  # the next poll meets the same trouble and tells; ValueError: closed
                continue
