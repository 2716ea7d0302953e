"""Door on another machine than its server, to whose own door it passes each call of a client on.

TLS and the wait for a first frame are here. All else is the server's: admission, the answer to a hello, the limits of a key.
Each call is a stream of one connection to the server, and a frame is read when the one before it was written.
"""

import asyncio
import logging
import resource
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from client.node.failures import NotAdmittedError, Server, ServerAwayError
from client.node.stream import NodeStream, channel_options
from common.door.door_pb2 import AdmitReply, Notice, ServerFrame
from common.door.frames import ADMIT, FORWARDED, FORWARDED_PEER, SERVE, DoorLimits, read_limits
from common.door.identity import newcomers_of, node_certificate, private_pem
from common.errors import ConnectError
from common.refusals import Refusals
from deploy.superlink.door import NOTICE_SECONDS, cancel_all
from deploy.superlink.door_thread import listening
from deploy.superlink.strangers import Strangers

log = logging.getLogger("fedloom.door")

ASK_SECONDS = 2.0
"""Seconds between two requests for certificates; the server may start anew with another key."""

AWAY = Notice(text="the server of this door does not answer, or no longer takes this door")


Call = Callable[..., Awaitable[Any]]


class FarDoor:
    """Door of a server elsewhere."""

    def __init__(self, server: Server, limits: DoorLimits) -> None:
        self._server, self._limits, self._leaves = server, limits, threading.Event()
        self._strangers = Strangers(Refusals(log.warning), limits.handshakes)

    async def run(self, address: str, on_open: Callable[[int], object]) -> None:
        """Serve clients at an address once the server admits this door; `on_open` gets the port.

        Raises:
            ConnectError: Retrying cannot help.
            RuntimeError: The address cannot be listened on.
        """
        before, said = None, ""
        async with AsyncExitStack() as stack:
            stack.callback(self._leaves.set)
            while True:
                try:
                    found = await asyncio.to_thread(self._ask)
                    if before is None:
                        await self._listen(stack, address, self._strangers.credentials(*found))
                        on_open(self._strangers.port)
                    elif found != before:
                        self._strangers.renew(*found)
                    before, said = found, ""
                except (ServerAwayError, NotAdmittedError) as error:
                    if str(error) != said:
                        log.warning("%s", said := str(error))
                await asyncio.sleep(ASK_SECONDS)

    async def _listen(self, stack: AsyncExitStack, address: str, credentials: grpc.ServerCredentials) -> None:
        server, limits = self._server, self._limits
        mine = grpc.ssl_channel_credentials(server.ca, *node_certificate(server.ca, server.identity))
        channel = grpc.aio.secure_channel(server.address, mine, channel_options(server, limits))
        self._channel = await stack.enter_async_context(channel)
        calls = {method: self._strangers.noting(self._passing(method)) for method in (SERVE, ADMIT)}
        opening = listening(address, credentials, calls, limits, limits.streams)
        self._strangers.port = await stack.enter_async_context(opening)
        stack.callback(asyncio.ensure_future(self._strangers.watch()).cancel)

    def _ask(self) -> tuple[tuple[bytes, bytes], bytes]:
        """Return key and certificate of this door, and the authorities of its clients."""
        server = self._server
        NodeStream(server, self._leaves).ask_admission()
        found = x509.load_pem_x509_certificates(server.certificate.pem)
        certificate, *issuers = (one.public_bytes(Encoding.PEM) for one in found)
        if not issuers:
            raise ConnectError(
                f"{server.address} knows this key as that of a client; admit it by nodes add with --door"
            )
        return (private_pem(server.identity), certificate), b"".join((newcomers_of(server.ca).pem, *issuers))

    def _passing(self, method: str) -> Callable[[Any, Any], Awaitable[None]]:
        """Return a handler of calls that passes them on."""
        away = (AdmitReply(refusal=AWAY) if method == ADMIT else ServerFrame(notice=AWAY)).SerializeToString()

        async def handle(frames: object, context: Any) -> None:
            with suppress(asyncio.CancelledError, TimeoutError):  # the client has gone, or is silent
                first = await asyncio.wait_for(context.read(), self._limits.hello)
                about = (FORWARDED, context.auth_context()["x509_pem_cert"][0]), (FORWARDED_PEER, context.peer())
                if not await _pass_on(first, context, self._channel.stream_stream(method)(metadata=about)):
                    await asyncio.wait_for(context.write(away), NOTICE_SECONDS)

        return handle


async def _pass_on(first: Any, context: Any, call: Any) -> bool:
    """Pass frames on between client and server; return False if the server ends the call without one."""
    has_answered = False

    async def send() -> None:
        await call.write(first)
        while await _copy_frame(context.read, call.write):
            pass
        await call.done_writing()

    async def receive() -> None:
        nonlocal has_answered
        while await _copy_frame(call.read, context.write):
            has_answered = True

    sent, received, code = (asyncio.ensure_future(one) for one in (send(), receive(), call.code()))
    try:
        done, _ = await asyncio.wait({sent, received, code}, return_when=asyncio.FIRST_COMPLETED)
        if done == {sent} and not sent.exception():
            await asyncio.wait({received, code}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({received}, timeout=NOTICE_SECONDS)
        return has_answered or not code.done() or code.result() == grpc.StatusCode.OK
    finally:
        call.cancel()
        await cancel_all(sent, received, code)


async def _copy_frame(read: Call, write: Call) -> bool:
    """Copy the next frame, and hold none while there is no other; return False at the end."""
    if (frame := await read()) is grpc.aio.EOF:
        return False
    await write(frame)
    return True


def run_door(server: Server, address: str) -> None:
    """Serve clients of a server at an address until a signal ends it; log to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a stranger's connections must not use them up

    async def run() -> None:
        work = asyncio.ensure_future(
            FarDoor(server, read_limits()).run(address, lambda port: log.info("the door is open"))
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with suppress(asyncio.CancelledError):
            await work

    asyncio.run(run())
