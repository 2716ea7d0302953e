"""gRPC channel to a server; calls end soon after a stop request and fail with typed errors."""

import threading
from collections.abc import Sequence
from typing import Any

import grpc

from client.node.failures import Server, ServerAwayError
from client.node.grpc_status import explain

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
    """Channel that connects on first use, encrypted if the server has a CA.

    Args:
        server: Address and credentials of the server.
        stop: Event that requests the client to stop.
        identity: Interceptor that signs every call.
        metadata: Metadata sent with every call.
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
