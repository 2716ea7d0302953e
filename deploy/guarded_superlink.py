"""Flower's SuperLink, whose Control and Runtime API answer processes of its own user only.

It erases ended runs, and limits what nodes may send.

Flower 1.39 offers accounts for these APIs in its commercial edition only. On Linux, the kernel lists the owner of each end
of a TCP connection on the same machine; connections of other users and of other machines get status 403. A system without
`/proc` gets a warning instead.
"""

import importlib
import logging
import os
from typing import Any

from flwr.superlink import extensions
from flwr.superlink.cli import flower_superlink
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from deploy.run_erasure import erasing, overwrite_deleted
from deploy.socket_owner import TABLES, Endpoint, find_user
from deploy.superexec import keep_superexec
from deploy.upload_limit import limit_uploads

REFUSAL = "this SuperLink answers processes of its own user on its own machine only"

log = logging.getLogger("flwr")


class OwnUserOnly:
    """Middleware that refuses requests of other users of the machine, and of other machines.

    Args:
        app: Application that answers.
    """

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

    def _is_own(self, peer: Endpoint | None, own: Endpoint | None) -> bool:
        if peer is None or own is None:
            return False
        return find_user(peer, own) in self._users


def main() -> None:
    """Run `flower-superlink` with its guards, and with a SuperExec that lives and ends with it."""
    os.environ["FORWARDED_ALLOW_IPS"] = ""  # otherwise a header of the request could name another peer
    if any(table.exists() for table in TABLES):
        extensions.get_middleware = lambda: (Middleware(OwnUserOnly),)
    else:
        log.warning("this system does not list connections: any user of this machine can call the control port")
    overwrite_deleted()
    extensions.get_lifespan_contexts = lambda: (erasing,)
    module: Any = importlib.import_module(flower_superlink.__module__)
    limit_uploads(module)
    keep_superexec(module)
    flower_superlink()


if __name__ == "__main__":
    main()
