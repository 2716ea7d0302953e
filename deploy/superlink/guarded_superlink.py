"""Flower's SuperLink, whose Control and Runtime API answer processes of its own user only.

It erases ended runs, and limits what nodes may send.

Flower 1.39 offers accounts for these APIs in its commercial edition only. On Linux, the kernel lists the owner of
each end of a TCP connection on the same machine; connections of other users and of other machines get status 403.
A system without `/proc` gets a warning instead.
"""

import asyncio
import importlib
import logging
import os
import shutil
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from fastapi import FastAPI
from flwr.common.config import get_project_dir
from flwr.common.constant import Status
from flwr.proto.fleet_pb2 import PushMessagesRequest, PushMessagesResponse
from flwr.proto.message_pb2 import PushObjectRequest, PushObjectResponse
from flwr.server.superlink.fleet.grpc_rere.fleet_servicer import FleetServicer
from flwr.server.superlink.linkstate.sql_linkstate import SqlLinkState
from flwr.supercore import sql_mixin
from flwr.supercore.state.schema.corestate_models import Fab
from flwr.superlink import extensions
from flwr.superlink.cli import flower_superlink
from flwr.superlink.servicer.control import control_handlers
from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from common.errors import ConfigError
from deploy.superlink.superexec import keep_superexec

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Connections of this machine, as Linux lists them."""

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
    ends = _encode(*peer), _encode(*local)
    for table in tables:
        for line in table.read_text("ascii").splitlines()[1:] if table.exists() else ():
            fields = line.split()
            local_end, remote, state, user, inode = fields[1], fields[2], fields[3], fields[7], fields[9]
            if int(state, 16) == ESTABLISHED and inode != "0" and (_plain(local_end), _plain(remote)) == ends:
                return int(user)
    return None


def _pack(host: str) -> tuple[int, bytes]:
    """Return the family and the bytes of an address; IPv4 addresses in IPv6 form are IPv4."""
    address = host.partition("%")[0].removeprefix("::ffff:")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


def _encode(host: str, port: int) -> str:
    """Return an endpoint as in `/proc/net/tcp`: words of 32 bits in this machine's byte order."""
    return _words(_pack(host)[1]) + f":{port:04X}"


def _words(packed: bytes) -> str:
    starts = range(0, len(packed), 4)
    return "".join(f"{int.from_bytes(packed[start : start + 4], sys.byteorder):08X}" for start in starts)


def _plain(endpoint: str) -> str:
    """Return an endpoint without the prefix of an IPv4 address in the table of IPv6."""
    return endpoint.removeprefix(_words(10 * b"\0" + b"\xff\xff"))


VARIABLE = "FEDLOOM_MOST_UPLOAD"
"""Environment variable with the limit in MB."""

DEFAULT_MB = 256
MEGABYTE = 10**6

log = logging.getLogger("flwr")


class BoundedFleet(FleetServicer):
    """Fleet API that stores no more than so many bytes of a message."""

    def __init__(self, most: int, **options: Any) -> None:
        super().__init__(**options)
        self._most = most
        self._received: dict[int, tuple[str, int]] = {}
        """Node -> its announced message, and the bytes that it has sent since."""

    def PushMessages(  # noqa: N802 - Flower's name
        self, request: PushMessagesRequest, context: grpc.ServicerContext
    ) -> PushMessagesResponse:
        """Announce a reply."""
        self._received[request.node.node_id] = request.message_object_trees[0].object_id, 0
        return super().PushMessages(request, context)

    def PushObject(  # noqa: N802 - Flower's name
        self, request: PushObjectRequest, context: grpc.ServicerContext
    ) -> PushObjectResponse:
        """Store an object of the announced reply, or delete the reply as too large."""
        node = request.node.node_id
        with self.lock:
            root, size = self._received.get(node, ("", 0))
            size += len(request.object_content)
            self._received[node] = root, size
        if size <= self._most:
            return super().PushObject(request, context)
        log.warning(
            "deleted a reply of node %s, which is larger than %s MB (%s)", node, self._most // MEGABYTE, VARIABLE
        )
        self.objectstore_factory.store().delete(root)
        return PushObjectResponse(stored=False)


def limit_uploads(module: Any) -> None:
    """Limit single messages and replies in Flower's module of the SuperLink.

    gRPC refuses a larger message unread.

    Raises:
        ConfigError: The environment has another value than a number of MB.
    """
    text = os.environ.get(VARIABLE) or str(DEFAULT_MB)
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{VARIABLE}={text} is no number of MB; leave it out for {DEFAULT_MB}")
    most = int(text) * MEGABYTE
    module.GRPC_MAX_MESSAGE_LENGTH = most + MEGABYTE  # with the fields around an object
    module.FleetServicer = partial(BoundedFleet, most)


REFUSAL = "this SuperLink answers processes of its own user on its own machine only"


class OwnUserOnly:
    """Middleware that refuses requests of other users of the machine, and of other machines."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._users = {0, os.getuid()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan" or self._is_own(scope.get("client"), scope.get("server")):
            await self._app(scope, receive, send)
            return
        log.warning("refused %s %s of another user or machine", scope.get("method", ""), scope.get("path", ""))
        await PlainTextResponse(REFUSAL, 403)(scope, receive, send)

    def _is_own(self, peer: Endpoint | None, local: Endpoint | None) -> bool:
        if peer is None or local is None:
            return False
        return find_user(peer, local) in self._users


SEARCH_SECONDS = 0.5
"""Seconds between two searches for ended runs."""

STARTS = threading.Lock()
"""Held while a run starts, whose app is stored first, and while the apps of ended runs are erased."""


def start_runs_alone() -> None:
    """Let no run start while the app of ended runs is erased; it would wait for an app that is gone."""
    handlers: Any = control_handlers
    start = handlers.start_run

    def start_run(*arguments: Any, **options: Any) -> Any:
        with STARTS:
            return start(*arguments, **options)

    handlers.start_run = start_run


def overwrite_deleted() -> None:
    """Let SQLite overwrite what Flower deletes with zeros."""
    module: Any = sql_mixin
    module.SQLITE_PRAGMAS += (("secure_delete", "ON"),)


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
    erased = set[int]()
    while True:
        try:
            await asyncio.to_thread(erase_ended, state, erased)
        except (SQLAlchemyError, OSError) as error:  # a busy database or a full disk; the next search tries again
            log.warning("ended runs are not erased yet: %s", type(error).__name__)
        await asyncio.sleep(SEARCH_SECONDS)


def erase_ended(state: SqlLinkState, erased: set[int]) -> None:
    """Erase messages, objects and app of each newly ended run, while no run starts."""
    with STARTS:
        _erase_ended(state, erased)


def _erase_ended(state: SqlLinkState, erased: set[int]) -> None:
    runs = state.get_run_info()
    used = {run.fab_hash for run in runs if run.status.status != Status.FINISHED}
    ended = [run for run in runs if run.status.status == Status.FINISHED and run.run_id not in erased]
    if not ended:
        return
    for run in ended:
        state.cleanup_run(run.run_id)
        if run.fab_hash not in used:
            with state.session() as session:
                session.execute(delete(Fab).where(Fab.fab_hash == run.fab_hash))
            shutil.rmtree(get_project_dir(run.fab_id, run.fab_version, run.fab_hash), ignore_errors=True)
    if not state.query("PRAGMA wal_checkpoint(TRUNCATE)")[0]["busy"]:
        erased |= {run.run_id for run in ended}


def main() -> None:
    """Run `flower-superlink` with its guards, and with a SuperExec that lives and ends with it."""
    os.environ["FORWARDED_ALLOW_IPS"] = ""  # otherwise a header of the request could name another peer
    if any(table.exists() for table in TABLES):
        extensions.get_middleware = lambda: (Middleware(OwnUserOnly),)
    else:
        log.warning("this system does not list connections: any user of this machine can call the control port")
    overwrite_deleted()
    start_runs_alone()
    extensions.get_lifespan_contexts = lambda: (erasing,)
    module: Any = importlib.import_module(flower_superlink.__module__)
    limit_uploads(module)
    keep_superexec(module)
    flower_superlink()


if __name__ == "__main__":
    main()
