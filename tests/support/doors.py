"""A door in this process, whose node tests script in place of a SuperLink."""

import asyncio
import logging
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flwr.app import RecordDict

from client.node.failures import Server
from common.door.door_pb2 import Addressed, Answer, Answers, Order
from common.door.frames import DoorLimits
from common.door.identity import issuer_of, private_pem
from common.errors import ConnectError
from common.hosts import HERE
from common.refusals import Refusals
from deploy.keys.certificates import Certificates, certify, make_authority, make_server_certificate
from deploy.keys.nodes import DOORS, add_key, load_private_key, make_node_key
from deploy.superlink.door import Door
from deploy.superlink.door_thread import Address, DoorThread
from deploy.superlink.far_door import FarDoor
from server.exchange.flower import decode_record, encode_record

RUN_ID = 99
PLAIN = Address("localhost:0")


class DoorHome:
    """Folder with certificates of a server, and node keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_authority(folder)
        files = make_server_certificate(folder)
        self.ca, self.certificate, self.key = (p.read_bytes() for p in (files.ca, files.server, files.server_key))
        self.at = Address("localhost:0", self.ca, self.certificate, self.key)

    def make_key(self, name: str) -> Any:
        """Return a new node key, whose file has this name."""
        make_node_key(self.folder / name, overwrite=True)
        return load_private_key(self.folder / name)

    def issued(self, key: Any, days: float = 30.0) -> tuple[bytes, bytes]:
        """Return a private key and a certificate for it as the server issues them, both in PEM."""
        return private_pem(key), issuer_of(self.key).certify(key.public_key(), datetime.now(UTC) + timedelta(days=days))


class FakeNode:
    """Node of a door without a SuperLink: a queue of orders, and the answers to them.

    Tests set: `registered` (keys, or None for any), `revoked` and `own` (nodes), `is_running` (of the run).
    """

    def __init__(self) -> None:
        self.registered: set[bytes] | None = None
        self.revoked, self.own, self.is_running = set[int](), set[int](), True
        self.nodes: dict[bytes, int] = {}
        self.events: list[tuple[str, int]] = []
        self.beats: list[int] = []
        self.answers: list[Answer] = []
        self.batches: list[int] = []
        self.door: DoorThread | None = None
        self._awaited = dict[str, None]()  # in the sequence in which they were posted
        self._taking: asyncio.Future[None] | None = None

    def post(self, content: RecordDict, kind: str = "train", nodes: Iterable[int] = (7,), most: int = 0) -> list[str]:
        """Order a task of each of these nodes, with replies of at most `most` bytes; return their ids."""
        order = Order(contents=[encode_record(content)])
        for node in nodes:
            about = Addressed(id=uuid.uuid4().hex, node=node, content=0, kind=kind, created=2e9, ttl=1000.0, most=most)
            order.tasks.append(about)
        return self.give(order)

    def give(self, order: Order, *, is_over: bool = False) -> list[str]:
        """Give an order to the door, and take the answers to its tasks; those to others may be over."""
        assert self.door
        if is_over:
            self._awaited.clear()
        asyncio.run_coroutine_threadsafe(self._exchange(order), self.door.loop).result()
        return [task.id for task in order.tasks]

    def ask(self, order: Order) -> Answers:
        """Return what the door answers to an order."""
        assert self.door
        assert self.door.door
        return asyncio.run_coroutine_threadsafe(self.door.door.exchange(RUN_ID, order), self.door.loop).result()

    async def _exchange(self, order: Order) -> None:
        assert self.door
        assert self.door.door
        order.awaited.extend(self._awaited)
        self._awaited |= dict.fromkeys(task.id for task in order.tasks)
        await self.door.door.exchange(RUN_ID, order)
        if self._taking is None or self._taking.done():
            self._taking = asyncio.ensure_future(self._take(self.door.door))

    async def _take(self, door: Door) -> None:
        while self._awaited:
            found = (await door.exchange(RUN_ID, Order(awaited=list(self._awaited)))).answers
            for answer in found:
                self._awaited.pop(answer.task, None)
            self.answers += found
            self.batches += [len(found)] if found else []

    @property
    def replies(self) -> list[RecordDict]:
        """Contents of the answers so far, without errors."""
        return [decode_record(answer.content) for answer in self.answers if not answer.code]

    @property
    def address(self) -> str:
        """Address of the door."""
        return f"localhost:{self.door.port}" if self.door else ""

    def admit(self, key: bytes) -> int | None:
        """Admit a key."""
        if not self.is_registered(key):
            return None
        node = self.nodes.setdefault(key, 7 + len(self.nodes))
        self.events.append(("admit", node))
        return node

    def is_registered(self, key: bytes) -> bool:
        """Return True for a key that is admitted."""
        return self.registered is None or key in self.registered

    def register(self, key: bytes) -> bool:
        """Register a key."""
        self.registered = (self.registered or set()) | {key}
        return True

    def elsewhere(self, nodes: Iterable[int]) -> set[int]:
        """Return the nodes of these that are Flower's own."""
        return self.own & {*nodes}

    def leave(self, node: int) -> None:
        """Note that a node has left."""
        self.events.append(("leave", node))

    def beat(self, beats: Iterable[int], connected: Iterable[int]) -> set[int]:
        """Note heartbeats."""
        self.beats += beats
        return self.revoked & {*connected}

    def run_of(self, token: str) -> int | None:
        """Return the run with this token."""
        return RUN_ID if token else None

    def ended(self, runs: Iterable[int]) -> set[int]:
        """Return the runs that have ended."""
        return set() if self.is_running else {*runs}


@contextmanager
def open_door(at: Address = PLAIN, *, nodes: Path | None = None, **limits: Any) -> Iterator[FakeNode]:
    """Yield the node of an open door; `nodes` is its folder of tokens, further arguments replace limits."""
    node: Any = FakeNode()
    node.door = DoorThread(
        at, node, replace(DoorLimits(), **limits), Refusals(logging.getLogger("flwr").warning), nodes=nodes
    )
    node.door.start()
    try:
        yield node
    finally:
        node.door.stop()


class RunningFarDoor:
    """Door of a server elsewhere, in a thread of this process, whose key is registered at the server or not."""

    def __init__(
        self, door: FakeNode, home: DoorHome, nodes: Path | None, at: str = "localhost:0", **limits: Any
    ) -> None:
        self.key = home.make_key(f"door-{uuid.uuid4().hex}")
        self.error: Exception | None = None
        self.address, self._opened = "", threading.Event()
        if nodes:
            register_door(nodes, home, self.key)
        self._door = FarDoor(Server(door.address, home.ca, self.key), replace(DoorLimits(), **limits))
        self._thread = threading.Thread(target=self._run, args=(at,), daemon=True)
        self._thread.start()
        assert self._opened.wait(20.0)

    def close(self) -> None:
        """Close it."""
        with suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(5.0)

    def _run(self, at: str) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._serve(at))

    async def _serve(self, at: str) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.ensure_future(self._door.run(at, self._open))
        try:
            await self._task
        except ConnectError as error:
            self.error = error
            self._opened.set()

    def _open(self, port: int) -> None:
        self.address = f"localhost:{port}"
        self._opened.set()


def register_door(nodes: Path, home: DoorHome, key: Any) -> None:
    """Register the key of a door at a server, as `fedloom nodes add` does."""
    certificate = certify(Certificates(home.folder), key.public_key(), HERE)
    add_key(nodes / DOORS, key.public_key()).with_suffix(".pem").write_bytes(certificate)
