"""Flower's SuperLink, whose Control and Runtime API answer processes of its own user only.

It lets clients in by the door, limits what Flower's own nodes may send, and erases ended runs.

Flower offers accounts for its Control and Runtime API in its commercial edition only. On Linux, the kernel lists the owner of
each end of a TCP connection on the same machine; connections of other users and of other machines get status 403.
A system without `/proc` gets a warning instead.
"""

import argparse
import asyncio
import importlib
import logging
import os
import re
import resource
import shutil
import signal
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException
from flwr.common.config import get_project_dir
from flwr.common.constant import Status
from flwr.proto.message_pb2 import PushObjectResponse
from flwr.server.superlink.linkstate import LinkState, LinkStateFactory
from flwr.server.superlink.linkstate.sql_linkstate import SqlLinkState
from flwr.supercore import sql_mixin
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME, NOOP_FEDERATION_ID, TASK_TOKEN_HEADER, TaskType
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.state.schema.corestate_models import Fab
from flwr.supercore.version import package_version
from flwr.superlink import extensions
from flwr.superlink.cli import flower_superlink
from flwr.superlink.federation import NoOpFederationManager
from flwr.superlink.servicer.control import control_handlers
from flwr.superlink.servicer.fleet import fleet_handlers
from google.protobuf.message import DecodeError, Message
from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from common.door.frames import MEGABYTE, MOST_VARIABLE, ORDERS, DoorLimits, read_limits
from common.errors import RunError
from common.files import find_shortage
from common.refusals import Refusals
from common.system_calls import return_large_blocks
from deploy.superlink.door_node import DoorNode
from deploy.superlink.door_thread import Address, DoorThread
from deploy.superlink.strangers import TABLES, connections, listed_end, plain_host
from deploy.superlink.superexec import keep_superexec

Endpoint = tuple[str, int]
"""Address and port."""

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, NLMSG_ERROR = 4, 20, 1, 2
"""Constants of sock_diag(7) and netlink(7)."""

ESTABLISHED = 1
ANSWER_BYTES, ANSWER_SECONDS = 8192, 1.0
HEADER, REQUEST, ANSWER = struct.Struct("=IHHII"), struct.Struct("=BBBxI"), struct.Struct("=xB2x48x12xII")
"""Message header; the request up to the connection; state, user and inode in the answer."""


def find_user(peer: Endpoint, local: Endpoint, tables: Iterable[Path] = TABLES) -> int | None:
    """Return the user id of the process at the other end of a connection; None if there is none here.

    A socket that its process has closed has no inode, and its user would be reported as 0. Reading a table takes Linux
    milliseconds, so the tables are searched only if a question for the one connection has no answer.

    Args:
        peer: The other end.
        local: This end.
        tables: Files in the form of `/proc/net/tcp`.
    """
    try:
        return ask_kernel(peer, local)
    except (AttributeError, OSError):  # no netlink, or no such connection
        return search_tables(peer, local, tables)


def ask_kernel(peer: Endpoint, local: Endpoint) -> int | None:
    """Ask for the user id of an open connection's other end by sock_diag(7); None if it is not open.

    Raises:
        OSError: The kernel knows no such connection, or does not answer such questions.
    """
    family, address = _pack(peer[0])
    ends = struct.pack("!HH", peer[1], local[1]) + address.ljust(16, b"\0") + _pack(local[0])[1].ljust(16, b"\0")
    any_device_and_cookie = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    question = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << ESTABLISHED) + ends + any_device_and_cookie
    header = HEADER.pack(HEADER.size + len(question), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(header + question)
        answer = kernel.recv(ANSWER_BYTES)
    if HEADER.unpack_from(answer)[1] == NLMSG_ERROR:
        code = -struct.unpack_from("=i", answer, HEADER.size)[0]
        raise OSError(code, os.strerror(code))
    state, user, inode = ANSWER.unpack_from(answer, HEADER.size)
    return int(user) if state == ESTABLISHED and inode else None


def search_tables(peer: Endpoint, local: Endpoint, tables: Iterable[Path]) -> int | None:
    """Search tables for the user id of an open connection's other end; None if it is in none."""
    ends = [f"{plain_host(host)}:{port}" for host, port in (peer, local)]
    for fields in connections(tables):
        user, inode, is_open = fields[7], fields[9], int(fields[3], 16) == ESTABLISHED
        if is_open and inode != "0" and [*map(listed_end, fields[1:3])] == ends:
            return int(user)
    return None


def _pack(host: str) -> tuple[int, bytes]:
    """Return the family and the bytes of an address; IPv4 addresses in IPv6 form are IPv4."""
    address = host.partition("%")[0].removeprefix("::ffff:")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


log = logging.getLogger("flwr")

REFUSALS = Refusals(log.warning)
"""Refusals of this SuperLink."""


REMEDY = "install a version that fedloom names (pip install fedloom)"


def replace(module: Any, name: str, value: object) -> None:
    """Replace a part of Flower; one that is gone would be missed in silence.

    Raises:
        RunError: Flower has no such part.
    """
    if not hasattr(module, name):
        raise RunError(f"this Flower ({package_version}) has no {module.__name__}.{name}; {REMEDY}")
    setattr(module, name, value)


class UploadLimit:
    """Limit of the bytes that are stored of one reply, on Flower's handlers for every transport.

    Args:
        most: Bytes of a reply.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._announce: Callable[..., Message] = fleet_handlers.push_messages
        self._store: Callable[..., Message] = fleet_handlers.push_object
        self._received: dict[int, tuple[str, int]] = {}
        """Node -> its announced message, and the bytes that it has sent since."""

    def install(self) -> None:
        """Stand before Flower's handlers."""
        replace(fleet_handlers, "push_messages", self.push_messages)
        replace(fleet_handlers, "push_object", self.push_object)

    def push_messages(self, request: Any, state: LinkState) -> Message:
        """Announce a reply."""
        self._received[request.node.node_id] = request.message_object_trees[0].object_id, 0
        return self._announce(request=request, state=state)

    def push_object(self, request: Any, state: LinkState) -> Message:
        """Store an object of the announced reply, or delete the reply as too large."""
        node = request.node.node_id
        with self._lock:
            root, size = self._received.get(node, ("", 0))
            size += len(request.object_content)
            self._received[node] = root, size
        if size <= self._most:
            return self._store(request=request, state=state)
        kind = f"reply larger than {self._most // MEGABYTE} MB ({MOST_VARIABLE}), which is deleted"
        REFUSALS.count(kind, key=f"node {node}")
        state.object_store.delete(root)
        return PushObjectResponse(stored=False)


DOORS: list[DoorThread] = []
"""The door of this process, while it is open."""


class Orders:
    """Middleware that takes the orders of ServerApps to the door of this process."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an order, or leave any other request to Flower."""
        answer: ASGIApp = self._app
        if scope["type"] == "http" and scope["path"] == ORDERS:
            answer = await _exchange(Request(scope, receive))
        await answer(scope, receive, send)


async def _exchange(request: Request) -> Response:
    try:
        content = await DOORS[0].exchange(request.headers.get(TASK_TOKEN_HEADER, ""), await request.body())
    except DecodeError:
        return PlainTextResponse("bytes that are no order", 400)
    except (IndexError, asyncio.CancelledError, RuntimeError):
        return PlainTextResponse("the door is closed", 503)
    return PlainTextResponse("no ServerApp with this token", 401) if content is None else Response(content)


@asynccontextmanager
async def serving(address: str, limits: DoorLimits, superlink: FastAPI) -> AsyncIterator[None]:
    """Open the door at an address while the SuperLink runs."""
    config = superlink.state.superlink_lifespan.config
    ca, certificate, key = config.certificates or (b"", b"", b"")
    authenticates: bool = config.enable_supernode_auth
    node = DoorNode(superlink.state.linkstate_factory.state(), authenticates=authenticates)
    at = Address(address, ca, certificate, key)
    nodes = os.environ.get("FEDLOOM_NODES")
    end = partial(os.kill, os.getpid(), signal.SIGTERM)  # the SuperLink's supervision starts it again
    door = DoorThread(at, node, limits, REFUSALS, nodes=Path(nodes) if nodes else None, on_end=end)
    door.start()
    DOORS.append(door)
    try:
        yield
    finally:
        DOORS.remove(door)
        door.stop()


def try_door() -> None:
    """Let a client come and go once at a door with a state of its own, and look for a ServerApp.

    A part of Flower that has changed would otherwise fail in the midst of a run, and its clients would come and go.

    Raises:
        RunError: A step fails; names it.
    """
    state = LinkStateFactory(FLWR_IN_MEMORY_DB_NAME, NoOpFederationManager(), ObjectStoreFactory()).state()
    step = "admit"
    try:
        run = state.create_run("a/b", "1", "", {}, NOOP_FEDERATION_ID, None, None, TaskType.SERVER_APP)
        door = DoorNode(state, authenticates=False)
        nodes = [door.admit(b"key") or 0]
        beat, elsewhere, run_of = (
            partial(door.beat, nodes, nodes),
            partial(door.elsewhere, nodes),
            partial(door.run_of, "a"),
        )
        for call in (beat, elsewhere, run_of, partial(door.ended, [run]), partial(door.leave, *nodes)):
            step = call.func.__name__
            call()
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise RunError(f"this Flower ({package_version}) fails at {step} of the door ({fault}); {REMEDY}") from error


METRICS = "/metrics"
"""Path of the counts of refusals and of the end of the certificate, in the text form of Prometheus."""

REFUSAL = "this SuperLink answers processes of its own user on its own machine only"


STOCK_PATH = re.compile("/v1/fleet/[a-z-]+")


class OwnUserOnly:
    """Middleware that refuses requests of other users of the machine, and of other machines.

    Args:
        app: What answers the others.
        most: Bytes of a request of Flower's own nodes, which are let through to the Fleet API; 0 for no such nodes.
    """

    def __init__(self, app: ASGIApp, most: int = 0) -> None:
        self._app, self._most = app, most
        self._users = {0, os.getuid()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        answer: ASGIApp = self._app
        if self._most and scope["type"] == "http" and STOCK_PATH.fullmatch(scope["path"]):
            headers = dict(scope["headers"])
            length = headers.get(b"content-length", b"")
            if b"transfer-encoding" in headers or not length.isdigit() or int(length) > self._most:
                answer = PlainTextResponse(f"a request needs a length of at most {self._most} bytes", 413)
        elif scope["type"] != "lifespan" and not self._is_own(scope.get("client"), scope.get("server")):
            REFUSALS.count("control call of another user or machine", ":".join(map(str, scope.get("client") or ())))
            answer = PlainTextResponse(REFUSAL, 403)
        elif scope.get("path") == METRICS:
            answer = PlainTextResponse(REFUSALS.to_text() + "".join(door.metrics for door in DOORS))
        await answer(scope, receive, send)

    def _is_own(self, peer: Endpoint | None, local: Endpoint | None) -> bool:
        if peer is None or local is None:
            return False
        return find_user(peer, local) in self._users


@asynccontextmanager
async def guarded(middleware: tuple[Middleware, ...], superlink: FastAPI) -> AsyncIterator[None]:
    """Check that a SuperLink has its guard before it serves.

    Raises:
        RunError: Flower has left it out.
    """
    if any(one not in superlink.user_middleware for one in middleware):
        raise RunError(f"this Flower ({package_version}) takes no guard of its control port; {REMEDY}")
    yield


SEARCH_SECONDS = 0.5
"""Seconds between two searches for ended runs."""

STARTS = threading.Lock()
"""Held while a run starts, whose app is stored first, and while the apps of ended runs are erased."""


ONLY = "fedloom serve has one run; for flwr run, start a SuperLink that outlives runs (docs/howto/flower-simulation.md)"


def start_runs_alone(*, only: bool) -> None:
    """Let no run start while the app of ended runs is erased; it would wait for an app that is gone.

    With `only`, nothing would train in a second run, so it is refused.
    """
    start, started = control_handlers.start_run, list[Any]()

    def start_run(*arguments: Any, **options: Any) -> Any:
        with STARTS:
            if only and started:
                raise HTTPException(409, ONLY)
            started[:] = [start(*arguments, **options)]
            return started[0]

    replace(control_handlers, "start_run", start_run)


BUSY_SECONDS = 30
"""Seconds for which a call waits for a locked database; Flower's own 5 would end the door."""


def set_up_database() -> None:
    """Let SQLite overwrite what Flower deletes with zeros, and wait for locks, such as during a backup."""
    module: Any = sql_mixin
    module.SQLITE_PRAGMAS += ("secure_delete", "ON"), ("busy_timeout", str(1000 * BUSY_SECONDS))


@asynccontextmanager
async def erasing(superlink: FastAPI) -> AsyncIterator[None]:
    """Erase runs of a SuperLink as they end; one without a database has nothing to erase.

    Flower deletes the messages of an ended run when somebody next asks for that run, and keeps its app. Here both go when the
    run ends, with the app's installed copy, and the write-ahead log is emptied.
    """
    state = superlink.state.linkstate_factory.state()
    if not isinstance(state, SqlLinkState):
        yield
        return
    watch = asyncio.create_task(_watch(state))
    try:
        yield
    finally:
        watch.cancel()


async def _watch(state: SqlLinkState) -> None:
    erased, was_full = set[int](), False
    folder = Path(os.environ.get("FLWR_HOME", "."))
    while True:
        if (shortage := find_shortage(folder)) and not was_full:
            log.warning("%s; the next round waits for room", shortage)
        was_full = bool(shortage)
        try:
            await asyncio.to_thread(erase_ended, state, erased)
        except (SQLAlchemyError, OSError) as error:  # a busy database or a full disk; the next search tries again
            log.warning("ended runs are not erased yet: %s", type(error).__name__)
        await asyncio.sleep(SEARCH_SECONDS)


def erase_ended(state: SqlLinkState, erased: set[int]) -> None:
    """Erase messages, objects and app of each newly ended run, while no run starts."""
    with STARTS:
        runs = state.get_run_info()
        used = {run.fab_hash for run in runs if run.status.status != Status.FINISHED}
        ended = [run for run in runs if run.status.status == Status.FINISHED and run.run_id not in erased]
        for run in ended:
            state.cleanup_run(run.run_id)
            if run.fab_hash not in used:
                with state.session() as session:
                    session.execute(delete(Fab).where(Fab.fab_hash == run.fab_hash))
                shutil.rmtree(get_project_dir(run.fab_id, run.fab_version, run.fab_hash), ignore_errors=True)
        if ended and not state.query("PRAGMA wal_checkpoint(TRUNCATE)")[0]["busy"]:
            erased |= {run.run_id for run in ended}


def main() -> None:
    """Run `flower-superlink` with its guards, and with a SuperExec that lives and ends with it."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--fleet-api-address", required=True, help="HOST:PORT of the door")
    parser.add_argument("--stock", action="store_true", help="let Flower's own nodes call the Fleet API of --port")
    options, sys.argv[1:] = parser.parse_known_args()
    limits = read_limits()
    return_large_blocks()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a stranger's connections must not use them up
    logging.getLogger("uvicorn.access").addFilter(lambda record: ORDERS not in record.getMessage())  # several a second
    os.environ["FORWARDED_ALLOW_IPS"] = ""  # otherwise a header of the request could name another peer
    middleware: tuple[Middleware, ...] = (Middleware(Orders),)
    if any(table.exists() for table in TABLES):
        largest = limits.message_bytes + MEGABYTE  # with the fields around an object
        middleware = Middleware(OwnUserOnly, most=largest if options.stock else 0), *middleware
    else:
        log.warning("this system does not list connections: any user of this machine can call the control port")
    replace(extensions, "get_middleware", lambda: middleware)
    set_up_database()
    start_runs_alone(only="process" in sys.argv)  # --isolation
    UploadLimit(limits.message_bytes).install()
    logging.disable(logging.INFO)
    try_door()
    logging.disable(logging.NOTSET)
    door = partial(serving, options.fleet_api_address, limits)
    replace(extensions, "get_lifespan_contexts", lambda: (partial(guarded, middleware), erasing, door))
    module: Any = importlib.import_module(flower_superlink.__module__)
    keep_superexec(module)
    flower_superlink()


if __name__ == "__main__":
    main()
