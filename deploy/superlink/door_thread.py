"""Thread in which a door listens: its address, its certificates, its start and its end."""

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509

from common.door.door_pb2 import Order
from common.door.frames import ADMIT, SERVE, DoorLimits
from common.door.identity import issuer_of, newcomers_of
from common.errors import ConfigError
from common.refusals import Refusals
from deploy.superlink.admission import Admission
from deploy.superlink.door import Door
from deploy.superlink.door_node import DoorNode
from deploy.superlink.doors import Doors
from deploy.superlink.strangers import Strangers

log = logging.getLogger("flwr")

EXPIRES = "fedloom_certificate_expires_seconds"

STOP_SECONDS = 5.0
"""Seconds in which the door must have closed."""


@dataclass(frozen=True)
class Address:
    """Address of a door, and the certificates of its server.

    Certificates are in PEM; without a `ca` the door has no encryption.
    """

    address: str
    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


class DoorThread:
    """Thread of a door with an event loop of its own, which a slow SuperLink does not hold up.

    `nodes` is the folder of registered keys and of tokens. `on_end` is called if the door fails.
    """

    def __init__(
        self,
        at: Address,
        node: DoorNode,
        limits: DoorLimits,
        refusals: Refusals,
        *,
        nodes: Path | None = None,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._at, self._node, self._limits, self._refusals, self._on_end = at, node, limits, refusals, on_end
        self._issuer, self._nodes = issuer_of(at.key) if at.ca else None, nodes
        self._admission = Admission(node, self._issuer, limits, refusals, nodes)
        self.loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._error: BaseException | None = None
        self.door: Door | None = None
        self.port = 0
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)

    def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: The address cannot be listened on.
        """
        self._thread.start()
        self._started.wait()
        if self._error:
            raise ConfigError(f"the door cannot listen on {self._at.address}: {self._error}")

    def stop(self) -> None:
        """End all streams."""
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)

    @property
    def metrics(self) -> str:
        """End of the server's certificate, in the text form of Prometheus; empty without encryption."""
        if not self._at.certificate:
            return ""
        end = x509.load_pem_x509_certificate(self._at.certificate).not_valid_after_utc.timestamp()
        about = f"# HELP {EXPIRES} End of the server's certificate, seconds since 1970.\n# TYPE {EXPIRES} gauge"
        return f"{about}\n{EXPIRES} {end:.0f}\n"

    async def exchange(self, token: str, content: bytes) -> bytes | None:
        """Exchange an order of a ServerApp for the door's answers; None for an unknown ServerApp.

        The caller has an event loop of its own.

        Raises:
            DecodeError: The content is no order.
        """
        order = Order.FromString(content)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._exchange(token, order), self.loop))

    async def _exchange(self, token: str, order: Order) -> bytes | None:
        run = await self.door.run_of(token) if self.door else None
        return None if run is None or self.door is None else (await self.door.exchange(run, order)).SerializeToString()

    def _run(self) -> None:
        """Serve, and free what gRPC holds; at the interpreter's end that would wait for a thread that is gone."""
        self._run_loop()
        self.door = None
        gc.collect()

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            try:
                runner.run(self._serve())
            except Exception as error:
                self._error = error
                log.exception("the door ended")
                self._on_end()
            finally:
                self._started.set()

    async def _serve(self) -> None:
        door = Door(self._node, self._limits, self._admission)
        strangers = Strangers(self._refusals, self._limits.handshakes)
        doors = Doors(self._nodes, self._limits.streams, self._refusals)
        calls, credentials = {SERVE: doors.accepting(door.serve)}, None
        if self._issuer:
            calls[ADMIT] = doors.accepting(self._admission.admit)
            authorities = newcomers_of(self._at.ca).pem + self._issuer.pem
            credentials = strangers.credentials((self._at.key, self._at.certificate), authorities)
        handlers, streams = {name: strangers.noting(call) for name, call in calls.items()}, self._limits.door_streams
        async with listening(self._at.address, credentials, handlers, self._limits, streams) as self.port:
            self.door, strangers.port = door, self.port
            self._started.set()

            async def run() -> None:
                await asyncio.gather(door.run(), strangers.watch(), doors.watch())

            work, stop = asyncio.ensure_future(run()), asyncio.ensure_future(self._stop.wait())
            done, _ = await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            await door.close()
            work.cancel()
            if work in done:
                work.result()


@asynccontextmanager
async def listening(
    address: str, credentials: Any, calls: Mapping[str, Any], limits: DoorLimits, streams: int
) -> AsyncIterator[int]:
    """Listen at an address, without encryption if there are no credentials; yield the port.

    A handler has the call from its header on, so that it limits what has no content.
    """
    service = SERVE.split("/")[1]
    methods = {name.split("/")[2]: grpc.stream_stream_rpc_method_handler(call) for name, call in calls.items()}
    options = [
        *limits.channel_options(),
        ("grpc.max_concurrent_streams", streams),
        ("grpc.server_handshake_timeout_ms", round(1000 * limits.hello)),
        ("grpc.max_connection_idle_ms", round(1000 * limits.hello)),
        ("grpc.http2.min_ping_interval_without_data_ms", round(500 * limits.keepalive)),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0.5)
