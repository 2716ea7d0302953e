"""Other doors of this server, which pass on the calls of their clients; it believes registered ones."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc

from common.door.frames import FORWARDED, FORWARDED_PEER
from common.door.identity import certified_key
from common.refusals import Refusals
from deploy.keys.nodes import door_certificate

LOOK_SECONDS = 1.0
"""Seconds between two looks for doors that were revoked."""

Handler = Callable[[Any, Any], Awaitable[Any]]


class Doors:
    """Calls at the door of a server, its own and those that other doors pass on.

    Args:
        nodes: Folder of registered keys, with those of other doors; None for a server without it.
        streams: Open calls of a connection at most; another door has a stream for each of its clients.
        refusals: Counter of refused calls.
    """

    def __init__(self, nodes: Path | None, streams: int, refusals: Refusals) -> None:
        self._nodes, self._streams, self._refusals = nodes, streams, refusals
        self._open, self._calls = Counter[str](), dict[Any, bytes]()

    def accepting(self, handler: Handler) -> Handler:
        """Return a handler whose context has certificate and address of the client in each call."""

        async def handle(frames: Any, context: Any) -> None:
            peer, task = context.peer(), asyncio.current_task()
            self._open[peer] += 1
            try:
                await handler(frames, await self._caller(context, peer, task))
            finally:
                self._calls.pop(task, None)
                self._open[peer] -= 1
                if not self._open[peer]:
                    del self._open[peer]

        return handle

    async def watch(self) -> None:
        """End the calls of doors that were revoked, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            revoked = {key for key in {*self._calls.values()} if not door_certificate(self._nodes, key)}
            for task in [task for task, key in self._calls.items() if key in revoked]:
                task.cancel()

    async def _caller(self, context: Any, peer: str, task: object) -> Any:
        about = dict(context.invocation_metadata() or ())
        if FORWARDED not in about:
            if self._open[peer] > self._streams:
                self._refusals.count("at the door, too many calls", peer)
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"a connection has {self._streams} calls")
            return context
        key, certificate = certified_key(context.auth_context().get("x509_pem_cert", [b""])[0]), about[FORWARDED]
        if not (door_certificate(self._nodes, key) and certified_key(certificate)):
            self._refusals.count("at the door, no door of this server", peer)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "no door of this server")
        self._calls[task] = key
        client = {
            "peer": lambda: str(about.get(FORWARDED_PEER)),
            "auth_context": lambda: {"x509_pem_cert": [certificate]},
        }
        return SimpleNamespace(read=context.read, write=context.write, **client)
