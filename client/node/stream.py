"""Connection of a client to the server: one stream through the door, kept alive by heartbeats."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from queue import Empty, Queue, SimpleQueue
from types import TracebackType
from typing import Self

import grpc
from flwr.app import Message
from google.protobuf.message import DecodeError

from client.node.failures import CertificateRefusedError, ExcessError, Server, ServerAwayError, explain, refusal
from client.node.flower import pack_reply, unpack_task
from common.door.door_pb2 import (
    AdmitReply,
    AdmitRequest,
    ClientFrame,
    Heartbeat,
    Hello,
    Notice,
    Received,
    Reply,
    ServerFrame,
    Task,
)
from common.door.frames import (
    ADMIT,
    MEGABYTE,
    MOST_VARIABLE,
    PROTOCOL,
    RENEWAL,
    SERVE,
    Assembly,
    DoorLimits,
    Rate,
    first_bytes,
    further_chunks,
    read_limits,
)
from common.door.identity import node_certificate, private_pem
from common.errors import ConnectError, FedloomError, WireError
from common.hosts import is_here
from common.node_names import to_pem
from common.wire.messages import ASSIGN, BUSY_SECONDS, EVALUATE, FAILED, IDLE_SECONDS, TRAIN

LOOK_SECONDS = 0.25
"""Longest wait of `NodeStream.receive`, after which the client looks for its owner's wishes."""

WELCOME_SECONDS = 10.0
LAST_SEND_SECONDS = 5.0  # seconds to send a finished reply after a stop request, since it cost privacy budget
LEAVE_SECONDS = 0.5

_RECONNECT = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 400))


def channel_options(server: Server, limits: DoorLimits) -> list[tuple[str, int]]:
    """Return the options of a channel to a server."""
    options = [*limits.channel_options(), *_RECONNECT]
    return [*options, ("grpc.enable_http_proxy", 0)] if is_here(server.host) else options


class Heart:
    """Thread that sends heartbeats until it is stopped."""

    def __init__(self, beat: Callable[[], object]) -> None:
        self._beat = beat
        self._left, self.busy = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start to send heartbeats."""
        self._thread.start()

    def stop(self) -> None:
        """Send no further heartbeat."""
        self._left.set()
        self.busy.set()
        self._thread.join(LEAVE_SECONDS)

    def _run(self) -> None:
        while not self._left.is_set():
            self._beat()
            if self.busy.is_set():
                self._left.wait(BUSY_SECONDS)
            else:
                self.busy.wait(IDLE_SECONDS)  # a request ends the pause at once


class NodeStream:
    """Connected node; a context manager that joins on entry and leaves on exit.

    Every method raises the errors of `failures.explain`. After ServerAwayError and NotAdmittedError the node must join again.
    RunOverError ends a message, ConnectError the client. Calls in progress end soon after `stop` is set.
    """

    def __init__(self, server: Server, stop: threading.Event, largest: Callable[[int], int] = lambda run: 0) -> None:
        self._server, self._stop, self._largest = server, stop, largest
        self._limits = limits = read_limits()
        self._rate, self._waiting, self._deadline = Rate(limits.frames, limits.burst), deque[int](), math.inf
        self._sending = ""
        self._outbox: SimpleQueue[Iterable[ClientFrame] | None] = SimpleQueue()
        self._inbox: Queue[Message | WireError] = Queue()  # a signal can make a SimpleQueue wait without end
        self._news = threading.Condition()
        self._received, self._allowed = set[str](), set[str]()
        self._notices: dict[str, Notice] = {}
        self._welcome: int | None = None
        self._error: FedloomError | None = None
        self._fault: ExcessError | None = None
        self._heart = Heart(self._beat)

    def __enter__(self) -> Self:
        """Join the federation and start the heartbeat."""
        server = self._server
        self._channel = self._open()
        hello = Hello(protocol=PROTOCOL, version=version("fedloom"), name=server.name, capabilities=[RENEWAL])
        if not server.ca:
            hello.key = to_pem(server.identity.public_key())
        self._put(ClientFrame(hello=hello))
        serve = self._channel.stream_stream(SERVE, request_serializer=ClientFrame.SerializeToString)
        self._call = serve(self._requests())
        threading.Thread(target=self._read, name="stream", daemon=True).start()
        try:
            self._await(lambda: self._welcome is not None, WELCOME_SECONDS, 0.0)
        except BaseException as error:
            self._close()
            if isinstance(error, CertificateRefusedError):
                server.certificate.pem = b""
                text = "no longer takes this node's certificate, or does not answer; asking for another one"
                raise ServerAwayError(f"{server.address} {text}") from None
            raise
        self._heart.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Leave; what was sent before arrives."""
        self._heart.stop()
        self._outbox.put(None)
        with self._news:
            self._news.wait_for(lambda: self._error is not None, LEAVE_SECONDS)
        self._close()

    @property
    def node_id(self) -> int:
        """Id of this node at the server."""
        return self._welcome or 0

    def receive(self) -> Message | None:
        """Return the next message for this node; None if none has come within a moment."""
        try:
            found = self._inbox.get(timeout=LOOK_SECONDS)
        except Empty:
            self._check()
            return None
        self._waiting.popleft()
        if isinstance(found, WireError):
            raise found
        self._put(ClientFrame(received=Received(task=found.metadata.message_id)))
        return found

    def send(self, reply: Message) -> None:
        """Send a reply, and wait until the server has it; repeating a send has no effect.

        Raises:
            RunOverError: The run has ended, or the server has started anew since the request, or takes no such message.
        """
        task, (frame, content) = reply.metadata.reply_to_message_id, pack_reply(reply)
        frame.size, frame.data = len(content), first_bytes(content)
        self._sending = task
        self._put(ClientFrame(reply=frame))

        def is_answered() -> bool:
            return task in self._received or task in self._allowed or task in self._notices

        try:
            self._await(is_answered)
            if task in self._allowed:
                self._outbox.put(ClientFrame(chunk=chunk) for chunk in further_chunks(content))
                self._await(lambda: task in self._received or task in self._notices)
            if notice := self._notices.get(task):
                raise refusal(notice, self._server)
        finally:
            if self._error is None:
                self._heart.busy.clear()
            self._received.discard(task)
            self._allowed.discard(task)
            self._notices.pop(task, None)

    def _open(self) -> grpc.Channel:
        """Return the channel to the server, with a certificate that it issued."""
        server = self._server
        if not server.ca:
            return grpc.insecure_channel(server.address, channel_options(server, self._limits))
        if not server.certificate.pem:
            self.ask_admission()
        return self._secure(private_pem(server.identity), server.certificate.pem)

    def ask_admission(self) -> None:
        """Get a certificate, which the server issues to a registered key, or for a token.

        Raises:
            NotAdmittedError: The key is not registered.
            ServerAwayError: The server does not answer, or not with a certificate of this node.
            ConnectError: Retrying cannot help.
        """
        server = self._server
        try:
            pair = node_certificate(server.ca, server.identity)
        except ValueError:
            raise ConnectError(
                "the CA file has no certificate; use the PEM file of the server's owner (ca.pem)"
            ) from None
        request = AdmitRequest(protocol=PROTOCOL, version=version("fedloom"), name=server.name, token=server.token)
        with self._secure(*pair) as channel:
            admit = channel.unary_unary(ADMIT, AdmitRequest.SerializeToString, AdmitReply.FromString)
            call = admit.future(request, timeout=WELCOME_SECONDS)
            call.add_done_callback(self._wake)
            self._await(call.done, WELCOME_SECONDS, 0.0)
            try:
                reply = call.result()
            except grpc.RpcError as failure:
                raise explain(failure, server) from None
        if not reply.certificate:
            raise refusal(reply.refusal, server)
        if not server.certificate.store(reply.certificate):
            raise ServerAwayError(f"{server.address} sent a certificate that is not for this node's key")

    def _secure(self, private: bytes, certificate: bytes) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(self._server.ca, private, certificate)
        return grpc.secure_channel(self._server.address, credentials, channel_options(self._server, self._limits))

    def _wake(self, call: object) -> None:
        with self._news:
            self._news.notify_all()

    def _beat(self) -> None:
        if time.monotonic() > self._deadline:
            self._excess("a request did not arrive in time")
            self._call.cancel()
        self._put(ClientFrame(heartbeat=Heartbeat()))

    def _excess(self, text: str) -> ExcessError:
        """Note that the server sends more, or slower, than it may; return the error."""
        self._fault = ExcessError(f"{self._server.address}: {text}; this client leaves for a moment")
        return self._fault

    def _put(self, frame: ClientFrame) -> None:
        self._outbox.put((frame,))

    def _requests(self) -> Iterator[ClientFrame]:
        while (frames := self._outbox.get()) is not None:
            yield from frames

    def _read(self) -> None:
        """Take what the server sends until the stream ends."""
        error: FedloomError = ServerAwayError(f"{self._server.address} has ended the connection")
        task: Task | None = None
        body: Assembly | None = None
        try:
            for content in self._call:
                frame = ServerFrame.FromString(content)
                if not frame.HasField("chunk") and self._rate.spend(1):
                    raise self._excess(f"more than {self._limits.burst} frames at once")
                match frame.WhichOneof("frame"):
                    case "task":
                        task, body = frame.task, self._begin(frame.task)
                    case "chunk" if body:
                        body.add(frame.chunk)
                    case "welcome" | "go" | "received":
                        self._note(frame)
                    case "certificate":
                        self._server.certificate.store(frame.certificate.pem)
                    case "notice":
                        if not frame.notice.task:
                            error = refusal(frame.notice, self._server)
                        self._note(frame)
                    case _:
                        break  # a frame without a meaning here
                if task and body and body.is_complete:
                    self._take(task, body)
                    task, body, self._deadline = None, None, math.inf
        except ExcessError as excess:
            error = excess
            self._call.cancel()
        except grpc.RpcError as failure:
            error = self._fault or (error if "" in self._notices else explain(failure, self._server))
        except (DecodeError, WireError) as failure:
            error = ServerAwayError(f"{self._server.address} sent malformed frames ({failure})")
            self._call.cancel()
        finally:  # a thread that ended without a word would leave the client waiting
            with self._news:
                self._error = error
                self._news.notify_all()
            self._outbox.put(None)

    def _most(self, task: Task) -> int:
        """Return the largest size of a request: by the model of its run, or without one by a fixed limit."""
        most = self._limits.message_bytes
        if task.kind in (TRAIN, EVALUATE, ASSIGN):
            return min(self._largest(task.run) or most, most)
        return min(self._limits.request_mb * MEGABYTE, most)

    def _begin(self, task: Task) -> Assembly:
        """Accept a request, or count and drop it.

        Raises:
            ExcessError: Too many requests wait, or too large ones.
        """
        waiting, is_wanted = [*self._waiting], task.size <= self._most(task)
        size = task.size if is_wanted else 0
        if len(waiting) >= self._limits.waiting or (waiting and sum(waiting) + size > self._limits.message_bytes):
            raise self._excess(f"{len(waiting)} requests of {sum(waiting):,} bytes wait, and one more came")
        self._deadline = time.monotonic() + self._limits.body_seconds(min(task.size, self._limits.message_bytes))
        self._heart.busy.set()
        return Assembly(task.size, task.data, wanted=is_wanted)

    def _take(self, task: Task, body: Assembly) -> None:
        self._waiting.append(len(body.content))
        found: Message | WireError
        try:
            found = unpack_task(task, body.content, self.node_id, self._server.address)
        except WireError as error:
            found = error
        if task.size > (most := self._most(task)):
            found = WireError(f"a request of {task.size:,} bytes, this client takes {most:,} ({MOST_VARIABLE})")
        if isinstance(found, WireError):
            self._put(ClientFrame(reply=Reply(task=task.id, code=FAILED, reason=str(found))))
        self._inbox.put(found)

    def _note(self, frame: ServerFrame) -> None:
        with self._news:
            match frame.WhichOneof("frame"):
                case "welcome":
                    self._welcome = frame.welcome.node
                case "go" if frame.go.task == self._sending:
                    self._allowed.add(frame.go.task)
                case "received" if frame.received.task == self._sending:
                    self._received.add(frame.received.task)
                case "notice" if frame.notice.task in ("", self._sending):
                    self._notices[frame.notice.task] = frame.notice
            self._news.notify_all()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _await(self, condition: Callable[[], bool], seconds: float = math.inf, last: float = LAST_SEND_SECONDS) -> None:
        """Wait for a condition; a stop request leaves `last` seconds.

        Raises:
            ServerAwayError: It did not come to pass.
        """
        end, stops = time.monotonic() + seconds, False
        with self._news:
            while not condition():
                self._check()
                if self._stop.is_set() and not stops:
                    end, stops = min(end, time.monotonic() + last), True
                if time.monotonic() >= end:
                    raise ServerAwayError(f"{self._server.address} does not answer")
                self._news.wait(0.1)

    def _close(self) -> None:
        self._outbox.put(None)
        self._call.cancel()
        self._channel.close()
