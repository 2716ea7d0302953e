"""Local model server: its routes and its access control; importing it must not import torch."""

import logging
import secrets
from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from client.tasks.lists import two_digits
from common.errors import FedloomError
from deploy.serving.spec import ServedModel, Serving

MAX_BODY = 2**20
"""Maximum number of bytes of a body."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer."""

OPEN = ("/healthz",)
"""Paths that need no token."""


class ServiceGuard:
    """ASGI middleware that refuses foreign hosts, requests without the token, and large bodies.

    Args:
        app: Application behind the guard.
        token: Bearer token; empty if none is needed.
        hosts: Accepted names in the header `Host`, without port; empty for any.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]) -> None:
        self._app, self._token, self._hosts = app, token, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on with its whole body."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] != "http":
            return
        if refusal := self._refuse(scope):
            await refusal(scope, receive, send_guarded)
            return
        body = await _read(receive)
        if body is None:
            await _refusal(413, f"the body exceeds {MAX_BODY:,} bytes; send less")(scope, receive, send_guarded)
            return
        await self._app(scope, _Replay(body, receive), send_guarded)

    def _refuse(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        name = hosts[0].rpartition(":")[0] or hosts[0] if len(hosts) == 1 else ""
        if self._hosts and name not in self._hosts:
            return _refusal(400, "unknown host; use the printed address")
        kind, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if kind.lower() == "bearer" else ""
        needs_token = self._token and scope["path"] not in OPEN
        if needs_token and not secrets.compare_digest(given.encode("utf-8", "surrogateescape"), self._token.encode()):
            return _refusal(401, "no valid token; send the header 'Authorization: Bearer TOKEN'")
        return None


class _Replay:
    """Receiver that returns a body that has been read, then what the client sends."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _read(receive: Receive) -> bytes | None:
    """Return the body; None if it is too large."""
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body"):
            return body


def _refusal(status: int, detail: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"detail": detail}, status, headers)


LOG = logging.getLogger("fedloom.serving")

MAX_FAULTS = 20
"""Maximum number of faults of a body in an answer."""


def build_app(
    model: ServedModel, serving: Serving, card: Mapping[str, Any], *, token: str, hosts: Collection[str]
) -> ASGIApp:
    """Return the application; an empty token means that none is needed."""
    app = FastAPI(
        title=f"fedloom: {card.get('for', model.config.task)}",
        version=version("fedloom"),
        docs_url=None,
        redoc_url=None,
    )
    app.router.redirect_slashes = False
    app.add_exception_handler(RequestValidationError, _explain)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/model")
    def card_of_model() -> dict[str, Any]:
        return dict(card)

    def answer(request: Any) -> Any:
        try:
            reply = serving.answer(model, request)
        except FedloomError as error:
            return JSONResponse({"detail": str(error)}, 422)
        except Exception as error:  # a traceback could hold values of the body
            LOG.error("request failed: %s", type(error).__name__)  # noqa: TRY400 - no traceback
            return JSONResponse({"detail": "the request could not be answered; see the server's log"}, 500)
        items = [dict(item) for item in reply.items]
        for item in items:  # as `fedloom recommend` prints it
            if isinstance(score := item.get("score"), float):
                item["score"] = two_digits(score)
        return {"model": model.run, "items": items, "notes": list(reply.notes)}

    answer.__annotations__["request"] = serving.request
    app.post(f"/v1/{serving.route}")(answer)
    return ServiceGuard(app, token, hosts)


async def _explain(request: Request, error: Exception) -> JSONResponse:
    """Return the faults of a body by place, without its values."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    lines = [f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults[:MAX_FAULTS]]
    return JSONResponse({"detail": "; ".join(lines)}, 422)
