"""A gRPC line to a server, whose calls end in time when the client must leave and fail with errors one can read."""

import threading
from collections.abc import Sequence
from typing import Any

import grpc

from client.node.failures import Server, ServerAwayError, explain

CALL_DEADLINE = 120.0  # seconds; generous, since a poll that the client gives up may still cost the message
LAST_CALL = 0.5  # seconds that a call may still take once the client was asked to stop

_OPTIONS = (  # times in milliseconds
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.keepalive_time_ms", 30_000),  # a line that died without a word is noticed after 40 s
    ("grpc.keepalive_timeout_ms", 10_000),
)


class Channel:
    """A channel that connects when first used, encrypted if the server has a CA, and calls over it.

    Args:
        server: The other end.
        stop: Set when the client must leave.
        identity: Signs every call.
        metadata: Sent with every call.
    """

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

    def start(self, method: Any, request: Any, *, deadline: float = CALL_DEADLINE) -> Any:
        """Begin a call and wait for nothing; gRPC's future."""
        return method.future(request, timeout=deadline, metadata=self._metadata)

    def call(self, method: Any, request: Any, *, last_call: float = LAST_CALL) -> Any:
        """Make a call; the answer, or the error that `failures.explain` finds for it."""
        return self.call_all(method, [request], last_call=last_call)[0]

    def call_all(self, method: Any, requests: Sequence[Any], *, last_call: float = LAST_CALL) -> list[Any]:
        """Make calls side by side; their answers in order, or the first error.

        Once the client was asked to stop, each has `last_call` seconds left.
        """
        calls = [self.start(method, request) for request in requests]
        try:
            return [self._answer(call, last_call) for call in calls]
        except grpc.RpcError as error:
            raise explain(error, self._server) from error
        except grpc.FutureCancelledError as error:
            raise ServerAwayError(f"{self._server.address} did not answer in time to leave") from error

    def close(self) -> None:
        """Hang up; calls under way fail."""
        self._channel.close()

    def _answer(self, call: Any, last_call: float) -> Any:
        done = threading.Event()
        call.add_done_callback(lambda _: done.set())
        while not done.wait(0.1):
            if self._stop.is_set() and not done.wait(last_call):
                call.cancel()
        return call.result()
