"""Connection of a client to the server by Flower's Fleet API over gRPC."""

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import grpc
from flwr.app import Context, Error, Message, RecordDict
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
from flwr.supercore.constant import (
    FLWR_COMPONENT_NAME_METADATA_KEY,
    FLWR_PACKAGE_NAME_METADATA_KEY,
    FLWR_PACKAGE_VERSION_METADATA_KEY,
)
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supercore.version import package_name, package_version

from client.node.failures import NotAdmittedError, RunOverError, Server, ServerAwayError, explain
from common.errors import FedloomError, RefusedError, WireError, public_reason
from common.wire.messages import BUSY_SECONDS, FAILED, IDLE_SECONDS, PROMISE_SECONDS, REFUSED

VERSION_METADATA = (
    (FLWR_PACKAGE_NAME_METADATA_KEY, package_name),
    (FLWR_PACKAGE_VERSION_METADATA_KEY, package_version),
    (FLWR_COMPONENT_NAME_METADATA_KEY, "SuperNode"),
)


def pack_reply(node: Node, reply: Message, seconds: float) -> tuple[PushMessagesRequest, dict[str, bytes]]:
    """Return the announcement of a reply that took `seconds` to compute, and its objects by id."""
    reply.metadata.__dict__["_message_id"] = reply.object_id
    with no_object_id_recompute():
        contents = {identity: thing.deflate() for identity, thing in get_all_nested_objects(reply).items()}
        request = PushMessagesRequest(
            node=node,
            messages_list=[message_to_proto(remove_content_from_message(reply))],
            message_object_trees=[get_object_tree(reply)],
            clientapp_runtime_list=[seconds],
        )
    return request, contents


def unpack_message(root: str, contents: dict[str, bytes], sender: str) -> Message:
    """Return the message that consists of these objects.

    Raises:
        WireError: The objects are malformed, or something else than a message.
    """
    try:
        message = inflate_object_from_contents(root, contents)
    except Exception as error:  # servers may send any bytes
        raise WireError(f"{sender} sent malformed content ({type(error).__name__})") from error
    if not isinstance(message, Message):
        raise WireError(f"{sender} sent a {type(message).__name__} instead of a message")
    message.metadata.__dict__["_message_id"] = root  # the content cannot contain its own hash
    return message


log = logging.getLogger("fedloom.client")
refusals = logging.getLogger("fedloom.client.refusals")
"""Log of refusals without a hidden cause; the log of `fedloom join` has a line of its own for each."""


def failure_reply(message: Message, error: Exception) -> Message:
    """Return an error answer; the full error with its causes is written to the client's log only."""
    return Message(failure(message.metadata.message_type, error), reply_to=message)


def failure(kind: str, error: Exception) -> Error:
    """Return the error in an answer to a kind of request; the log alone has all of it."""
    details = f"{error}: {error.__cause__}" if error.__cause__ else str(error)
    refused = isinstance(error, RefusedError)
    sink = refusals if refused and not error.__cause__ else log
    sink.error("%s: %s", kind, details, exc_info=not isinstance(error, FedloomError))
    return Error(REFUSED if refused else FAILED, public_reason(error))


CALL_SECONDS = 120.0  # seconds; long, since an abandoned poll may lose the message
LAST_CALL_SECONDS = 0.5  # seconds that a call may still take after a stop request

_OPTIONS = (  # times in milliseconds
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 400),
    ("grpc.keepalive_time_ms", 30_000),  # a silently broken connection is detected after 40 s
    ("grpc.keepalive_timeout_ms", 10_000),
)


class Channel:
    """Channel that connects on first use, encrypted if the server has a CA."""

    def __init__(
        self,
        server: Server,
        stop: threading.Event,
        identity: grpc.UnaryUnaryClientInterceptor,
        metadata: Sequence[tuple[str, str]],
    ) -> None:
        self._server, self._stop, self._metadata = server, stop, metadata
        if server.ca:
            credentials = grpc.ssl_channel_credentials(server.ca)
            self._channel = grpc.secure_channel(server.address, credentials, _OPTIONS)
        else:
            self._channel = grpc.insecure_channel(server.address, _OPTIONS)
        self.channel = grpc.intercept_channel(self._channel, identity)

    def start(self, method: Any, request: Any, *, deadline: float = CALL_SECONDS) -> Any:
        """Start a call without waiting; return gRPC's future."""
        return method.future(request, timeout=deadline, metadata=self._metadata)

    def call(self, method: Any, request: Any, *, last_call: float = LAST_CALL_SECONDS) -> Any:
        """Make a call; return the answer or raise the error of `failures.explain`."""
        return self.call_all(method, [request], last_call=last_call)[0]

    def call_all(self, method: Any, requests: Sequence[Any], *, last_call: float = LAST_CALL_SECONDS) -> list[Any]:
        """Make calls concurrently; return their answers in order or raise the first error.

        After a stop request, each call has `last_call` seconds left.
        """
        calls = [self.start(method, request) for request in requests]
        try:
            return [self._answer(call, last_call) for call in calls]
        except grpc.RpcError as error:
            raise explain(error, self._server) from error
        except grpc.FutureCancelledError as error:
            raise ServerAwayError(f"{self._server.address} did not answer before this client stopped") from error

    def close(self) -> None:
        """Close the channel; calls in progress fail."""
        self._channel.close()

    def _answer(self, call: Any, last_call: float) -> Any:
        done = threading.Event()
        call.add_done_callback(lambda _: done.set())
        while not done.wait(0.1):
            if self._stop.is_set() and not done.wait(last_call):
                call.cancel()
        return call.result()


class Heart:
    """Thread that sends heartbeats until it is stopped."""

    def __init__(self, beat: Callable[[], object]) -> None:
        self._beat = beat
        self._left, self.busy = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start to send heartbeats."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Send no further heartbeat; wait so long for the end of one in progress."""
        self._left.set()
        self.busy.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._left.is_set():
            if self.busy.is_set():
                self._left.wait(BUSY_SECONDS)
            else:
                self.busy.wait(IDLE_SECONDS)  # a request ends the pause at once
            if self._left.is_set():
                return
            try:
                self._beat()
            except (grpc.RpcError, grpc.FutureCancelledError, ValueError):
                continue  # the next poll reports the failure; ValueError: channel closed


LAST_SEND_SECONDS = 5.0  # seconds to send a finished reply after a stop request, since it cost privacy budget
FETCH_SECONDS = 1.0  # seconds from the last reply to leaving; the server polls ten times a second and must fetch it
FIRST_PULL_RETRY_SECONDS, MAX_PULL_RETRY_SECONDS = 0.01, 0.2  # seconds, for announced content that has not arrived yet


class Fleet:
    """Connected node; a context manager that joins on entry and leaves on exit.

    Every method raises the errors of `failures.explain`. After ServerAwayError the same call may succeed later, after
    NotAdmittedError the node must join again. RunOverError ends a message, ConnectError the client. Calls in progress end soon
    after `stop` is set.
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
        self._server.last_node.write(self.node_id)
        self._heart.start()
        return self

    def _activate(self) -> int:
        """Return the node's id; a connection that this client left behind in a crash is ended first."""
        request = ActivateNodeRequest(public_key=self._public_key, heartbeat_interval=PROMISE_SECONDS)
        try:
            return int(self._channel.call(self._stub.ActivateNode, request).node_id)
        except NotAdmittedError as refusal:
            if (before := self._server.last_node.read()) is None:
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
        root, ids = tree.object_id, [part.object_id for part in iterate_object_tree(tree)]
        contents = self._pull([root], run_id)  # the server's app uploads it last, so mostly all parts have arrived
        contents |= self._pull([identity for identity in ids if identity != root], run_id)
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


Config = dict[str, bool | float | int | str]
RUNS_REMEMBERED = 16


class RunContexts:
    """State and configuration of the last `RUNS_REMEMBERED` runs."""

    def __init__(self, node_config: Config) -> None:
        self._node_config = node_config
        self._runs: OrderedDict[int, tuple[RecordDict, Config]] = OrderedDict()

    def build(self, fleet: Fleet, run_id: int) -> Context:
        """Return the Context of a run; the configuration of a new run is fetched."""
        if run_id not in self._runs:
            self._runs[run_id] = RecordDict(), fleet.fetch_run_config(run_id)
            while len(self._runs) > RUNS_REMEMBERED:
                self._runs.popitem(last=False)
        state, run_config = self._runs[run_id]
        return Context(
            run_id=run_id,
            node_id=fleet.node_id,
            node_config=dict(self._node_config),
            state=state,
            run_config=dict(run_config),
        )

    def store(self, context: Context) -> None:
        """Store the state that the app has left in a Context."""
        self._runs[context.run_id] = context.state, self._runs[context.run_id][1]
