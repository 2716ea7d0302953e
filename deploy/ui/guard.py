"""Guard of the live page: accepts only requests of this machine's browser that have the token."""

import os
import re
import secrets
import stat
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deploy.files import write_file

TOKEN_BYTES = 32

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer."""

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::([0-9]{1,5}))?")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def stored_token(path: Path) -> str:
    """Return the token in a private file; a missing, damaged or readable file is replaced.

    The token is stored, so that open pages continue after a restart of the server.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return _make_token(path)
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        is_private = stat.S_ISREG(about.st_mode) and not about.st_mode & 0o077 and about.st_uid == os.getuid()
        token = file.read(100).decode("ascii", "replace") if is_private else ""
    return token if _TOKEN.fullmatch(token) else _make_token(path)


def _make_token(path: Path) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    write_file(path, token.encode(), mode=0o600, overwrite=True)
    return token


class PageGuard:
    """ASGI middleware that refuses foreign hosts, other methods than GET, and requests without the token.

    A token in the address is exchanged for a cookie. Its name contains the port, because cookies ignore ports.

    Args:
        app: Application behind the guard.
        token: Token of the printed address.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._refuse(scope) or self._app
        await answer(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not passed on."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        host = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return PlainTextResponse("unknown host; open the printed address\n", 400)
        if scope["method"] != "GET":
            return PlainTextResponse("only GET is answered\n", 405, {"Allow": "GET"})
        cookie = f"fedloom-{host[1] or 80}"
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if given := [value for key, value in query if key == "token"]:
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            return self._exchange(given[0], scope["path"] + (f"?{rest}" if rest else ""), cookie)
        if not self._is_token(cookie_parser(headers.get("cookie", "")).get(cookie, "")):
            return PlainTextResponse("no token; open the address that fedloom printed\n", 401)
        return None

    def _exchange(self, token: str, path: str, cookie: str) -> Response:
        """Redirect to the same path with a cookie in place of the token."""
        if not self._is_token(token):
            return PlainTextResponse("wrong token; open the address that fedloom printed\n", 401)
        answer = RedirectResponse("/" + path.lstrip("/\\"), 303)  # "//host" would name another host
        answer.set_cookie(cookie, self._token, path="/", httponly=True, samesite="lax")
        return answer

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("utf-8", "surrogateescape"), self._token.encode())
