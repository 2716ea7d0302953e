"""Connection of a client to the server: Flower's Fleet API over gRPC.

This module, `client.node.content` and `client.node.version` alone use internals of Flower, which
`tests/contracts/test_fleet_api.py` pins. This one calls the generated gRPC stub instead of Flower's own connection wrapper.
That wrapper retries without end, ends the process on failure and swallows exceptions. The stub's GetFab is never called,
so no code is received.
"""

import math
import threading
import time
from types import TracebackType
from typing import Self

import grpc
from flwr.app import Message
from flwr.client.grpc_rere_client.node_auth_client_interceptor import NodeAuthClientInterceptor
from flwr.common.serde import run_from_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    RegisterNodeFleetRequest,
    UnregisterNodeFleetRequest,
)
from flwr.proto.fleet_pb2_grpc import FleetStub
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, ObjectTree, PullObjectRequest, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.proto.run_pb2 import GetRunRequest
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes

from client.node.channel import CALL_SECONDS, LAST_CALL_SECONDS, Channel
from client.node.content import pack_reply, unpack_message
from client.node.failures import NotAdmittedError, RunOverError, Server, ServerAwayError
from client.node.heart import Heart
from client.node.version import VERSION_METADATA
from common.errors import FedloomError
from common.heartbeat import IDLE_SECONDS, PROMISE_SECONDS

LAST_SEND_SECONDS = 5.0  # seconds to send a finished reply after a stop request, since it cost privacy budget
FETCH_SECONDS = 1.0  # seconds from the last reply to leaving; the server polls ten times a second and must fetch it
FIRST_PULL_RETRY_SECONDS, MAX_PULL_RETRY_SECONDS = 0.01, 0.2  # seconds, for announced content that has not arrived yet


class Fleet:
    """Connected node; a context manager that joins on entry and leaves on exit.

    Every method raises the errors of `failures.explain`. After ServerAwayError the same call may succeed later, after
    NotAdmittedError the node must join again. RunOverError ends a message, ConnectError the client.

    Args:
        server: Address and credentials of the server.
        stop: Event that requests the client to stop; calls in progress then end soon.
    """

    def __init__(self, server: Server, stop: threading.Event) -> None:
        self._server, self._stop = server, stop
        self._guest = server.key is None
        key = generate_key_pairs()[0] if server.key is None else server.key
        self._public_key = public_key_to_bytes(key.public_key())
        # the version is sent as metadata, since Flower's interceptor for it makes every call blocking
        self._channel = Channel(server, stop, NodeAuthClientInterceptor(key, key.public_key()), VERSION_METADATA)
        self._stub = FleetStub(self._channel.channel)
        self._node = Node()
        self._confirmation: object = None
        self._announced: tuple[int, ObjectTree] | None = None
        self._sent = -math.inf
        self._heart = Heart(self._beat)

    def __enter__(self) -> Self:
        """Join the federation and start the heartbeat."""
        try:
            if self._guest:
                self._channel.call(self._stub.RegisterNode, RegisterNodeFleetRequest(public_key=self._public_key))
            self._node = Node(node_id=self._activate())
        except BaseException:
            self._channel.close()
            raise
        self._server.place.write(self.node_id)
        self._heart.start()
        return self

    def _activate(self) -> int:
        """Return the node's id; a connection that this client left behind in a crash is ended first."""
        request = ActivateNodeRequest(public_key=self._public_key, heartbeat_interval=PROMISE_SECONDS)
        try:
            return int(self._channel.call(self._stub.ActivateNode, request).node_id)
        except NotAdmittedError as refusal:
            if (before := self._server.place.read()) is None:
                raise
            try:
                self._channel.call(self._stub.DeactivateNode, DeactivateNodeRequest(node_id=before))
            except FedloomError:
                raise refusal from None
            return int(self._channel.call(self._stub.ActivateNode, request).node_id)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Announce the departure, after time for the server to fetch the last reply."""
        self._heart.stop(LAST_CALL_SECONDS)
        time.sleep(max(0.0, self._sent + FETCH_SECONDS - time.monotonic()))
        calls = [(self._stub.DeactivateNode, DeactivateNodeRequest(node_id=self.node_id))]
        calls += [(self._stub.UnregisterNode, UnregisterNodeFleetRequest(node_id=self.node_id))] if self._guest else []
        try:
            for method, request in calls:
                self._channel.start(method, request, deadline=LAST_CALL_SECONDS).result()
        except grpc.RpcError:
            pass  # the server detects the missing heartbeat
        finally:
            self._channel.close()

    @property
    def node_id(self) -> int:
        """Id of this node at the server."""
        return int(self._node.node_id)

    def receive(self) -> Message | None:
        """Return the next message for this node with its content, or None."""
        if self._announced is None:
            answer = self._channel.call(self._stub.PullMessages, PullMessagesRequest(node=self._node))
            if not answer.messages_list:
                return None
            self._announced = answer.messages_list[0].metadata.run_id, answer.message_object_trees[0]
            self._heart.busy.set()
        try:
            message = self._fetch(*self._announced)
        except ServerAwayError:
            raise  # a message is announced once: fetch it when the server is back
        except FedloomError:
            self._announced = None
            self._heart.busy.clear()
            raise
        self._announced = None
        return message

    def send(self, reply: Message, seconds: float = 0.0) -> None:
        """Send a reply that took `seconds` to compute; repeating a send has no effect.

        All objects are sent at once. The server's app may request them as soon as the reply is announced, and Flower lets it
        wait a full second for a missing one.

        Raises:
            RunOverError: The run has ended, or the server has started anew since the request.
        """
        if reply.metadata.src_node_id != self.node_id:
            raise RunOverError("the server has started anew since this request")
        try:
            self._push(reply, seconds)
        finally:
            self._heart.busy.clear()

    def _push(self, reply: Message, seconds: float) -> None:
        run_id, (request, contents) = reply.metadata.run_id, pack_reply(self._node, reply, seconds)
        answer = self._channel.call(self._stub.PushMessages, request, last_call=LAST_SEND_SECONDS)
        requested, session = set(answer.objects_to_push), answer.session_id
        objects = [
            PushObjectRequest(
                node=self._node, run_id=run_id, object_id=identity, object_content=content, session_id=session
            )
            for identity, content in contents.items()
            if identity in requested
        ]
        self._channel.call_all(self._stub.PushObject, objects, last_call=LAST_SEND_SECONDS)
        self._sent = time.monotonic()

    def fetch_run_config(self, run_id: int) -> dict[str, bool | float | int | str]:
        """Return the overrides in the run's configuration; the run's code is not fetched."""
        answer = self._channel.call(self._stub.GetRun, GetRunRequest(node=self._node, run_id=run_id))
        return dict(run_from_proto(answer.run).override_config)

    def _fetch(self, run_id: int, tree: ObjectTree) -> Message:
        root, parts = tree.object_id, [part.object_id for part in iterate_object_tree(tree)]
        contents = self._pull([root], run_id)  # the server's app uploads it last, so mostly all parts have arrived
        contents |= self._pull([part for part in parts if part != root], run_id)
        confirmation = ConfirmMessageReceivedRequest(node=self._node, run_id=run_id, message_object_id=root)
        # lets the server delete the message; gRPC cancels a call whose future is not referenced
        self._confirmation = self._channel.start(self._stub.ConfirmMessageReceived, confirmation)
        return unpack_message(root, contents, self._server.address)

    def _pull(self, objects: list[str], run_id: int) -> dict[str, bytes]:
        """Return the contents of announced objects; objects in transit are requested again."""
        contents: dict[str, bytes] = {}
        pause, end = FIRST_PULL_RETRY_SECONDS, time.monotonic() + CALL_SECONDS
        while missing := [identity for identity in objects if identity not in contents]:
            requests = [PullObjectRequest(node=self._node, run_id=run_id, object_id=identity) for identity in missing]
            for identity, answer in zip(missing, self._channel.call_all(self._stub.PullObject, requests), strict=True):
                if answer.object_available:
                    contents[identity] = answer.object_content
                elif not answer.object_found or time.monotonic() > end:
                    raise RunOverError("the content of an announced message is gone")
            if len(contents) < len(objects) and self._stop.wait(pause):
                raise ServerAwayError("stop requested before a message had arrived")
            pause = min(2 * pause, MAX_PULL_RETRY_SECONDS)
        return contents

    def _beat(self) -> None:
        request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=PROMISE_SECONDS)
        self._channel.start(self._stub.SendNodeHeartbeat, request, deadline=IDLE_SECONDS).result()
