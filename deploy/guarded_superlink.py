"""Flower's SuperLink, whose Control and Runtime API answer processes of its own user only.

Flower 1.39 offers accounts for these APIs in its commercial edition only. On Linux, the kernel lists the owner of each end
of a TCP connection on the same machine; connections of other users and of other machines get status 403. A system without
`/proc` gets a warning instead.
"""

import importlib
import logging
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.superlink import extensions
from flwr.superlink.cli import flower_superlink
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from common.system_calls import ending_with_this

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Connections of this machine, as Linux lists them."""

ESTABLISHED = "01"
REFUSAL = "this SuperLink answers processes of its own user on its own machine only"
Endpoint = tuple[str, int]
"""Address and port."""

log = logging.getLogger("flwr")


class OwnUserOnly:
    """Middleware that refuses requests of other users of the machine, and of other machines.

    Args:
        app: Application that answers.
        tables: Files with the connections of this machine.
    """

    def __init__(self, app: ASGIApp, tables: Iterable[Path] = TABLES) -> None:
        self._app, self._tables = app, tuple(tables)
        self._users = {0, os.getuid()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan" or self._is_own(scope.get("client"), scope.get("server")):
            await self._app(scope, receive, send)
            return
        log.warning("refused %s %s of another user or machine", scope.get("method", ""), scope.get("path", ""))
        await PlainTextResponse(REFUSAL, 403)(scope, receive, send)

    def _is_own(self, peer: Endpoint | None, own: Endpoint | None) -> bool:
        if peer is None or own is None:
            return False
        return find_user(peer, own, self._tables) in self._users


def find_user(peer: Endpoint, own: Endpoint, tables: Iterable[Path]) -> int | None:
    """Return the user id of the process at the other end of a connection; None if there is none here.

    A socket that its process has closed has no inode, and its user would be listed as 0.

    Args:
        peer: The other end.
        own: This end.
        tables: Files in the form of `/proc/net/tcp`.
    """
    ends = _encode(*peer), _encode(*own)
    for table in tables:
        for line in table.read_text("ascii").splitlines()[1:] if table.exists() else ():
            fields = line.split()
            local, remote, state, user, inode = fields[1], fields[2], fields[3], fields[7], fields[9]
            if state == ESTABLISHED and inode != "0" and (_plain(local), _plain(remote)) == ends:
                return int(user)
    return None


def _encode(host: str, port: int) -> str:
    """Return an endpoint as in `/proc/net/tcp`: words of 32 bits in this machine's byte order."""
    address = host.partition("%")[0].removeprefix("::ffff:")
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    words = (int.from_bytes(packed[start : start + 4], sys.byteorder) for start in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _plain(endpoint: str) -> str:
    """Return an endpoint without the prefix of an IPv4 address in the table of IPv6."""
    return endpoint.removeprefix("0000000000000000FFFF0000")


def main() -> None:
    """Run `flower-superlink` with the middleware, and with a SuperExec that ends with it."""
    os.environ["FORWARDED_ALLOW_IPS"] = ""  # otherwise a header of the request could name another peer
    if any(table.exists() for table in TABLES):
        extensions.get_middleware = lambda: (Middleware(OwnUserOnly),)
    else:
        log.warning("this system does not list connections: any user of this machine can call the control port")
    module: Any = importlib.import_module(flower_superlink.__module__)
    command = module._get_superexec_command
    module._get_superexec_command = lambda **options: ending_with_this(command(**options))
    flower_superlink()


if __name__ == "__main__":
    main()
