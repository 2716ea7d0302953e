"""Live page of runs: its routes, its access control and its server on this machine's loopback address."""

import os
import re
import secrets
import socket
import stat
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import uvicorn
from anyio import to_thread
from rich.console import Console
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request, cookie_parser
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.errors import ConfigError
from deploy.files import write_file
from deploy.pages.live_data import MAX_EXAMPLES, RunList, Streams, read_detail, read_file

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
    token = ""
    with suppress(OSError), open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        about = os.fstat(file.fileno())
        if stat.S_ISREG(about.st_mode) and not about.st_mode & 0o077 and about.st_uid == os.getuid():
            token = file.read(100).decode("ascii", "replace")
    if not _TOKEN.fullmatch(token):
        token = secrets.token_urlsafe(TOKEN_BYTES)
        write_file(path, token.encode(), mode=0o600, overwrite=True)
    return token


class PageGuard:
    """ASGI middleware that refuses foreign hosts, other methods than GET, and requests without the token.

    A token in the address is exchanged for a cookie. Its name contains the port, because cookies ignore ports.
    Programs send the token as a bearer.
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
        """Return the answer to a request that is not passed on; a token is exchanged for a cookie."""
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
            if not self._is_token(given[0]):
                return PlainTextResponse("wrong token; open the address that fedloom printed\n", 401)
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            path = "/" + scope["path"].lstrip("/\\")  # "//host" would name another host
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(cookie, self._token, path="/", httponly=True, samesite="lax")
            return answer
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if not self._is_token(cookie_parser(headers.get("cookie", "")).get(cookie, bearer)):
            return PlainTextResponse("no token; open the address that fedloom printed\n", 401)
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("utf-8", "surrogateescape"), self._token.encode())


HERE = Path(__file__).parent
MAX_LISTED = 1_000  # runs in one list


def make_app(root: Path, token: str) -> PageGuard:
    """Return the guarded application over the folder of runs; nothing is written there."""
    listed = RunList(root)

    async def page(request: Request) -> Response:
        return FileResponse(HERE / "live.html", media_type="text/html")

    async def runs(request: Request) -> Response:
        limit = request.query_params.get("limit", "200")
        if not (limit.isascii() and limit.isdigit() and len(limit) < 6):
            raise HTTPException(400, "limit is not a number")
        return JSONResponse(await to_thread.run_sync(listed.newest, min(int(limit), MAX_LISTED)))

    async def run(request: Request) -> Response:
        detail = await to_thread.run_sync(read_detail, root, request.path_params["run"])
        if detail is None:
            raise HTTPException(404)
        return JSONResponse(detail)

    async def examples(request: Request) -> Response:
        name = request.path_params["run"]
        content = await to_thread.run_sync(read_file, root, name, "examples.json", MAX_EXAMPLES)
        if content is None:
            raise HTTPException(404)
        return Response(content, media_type="application/json")

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/metrics", partial(_metrics, root)),
            Route("/api/runs", runs),
            Route("/api/runs/{run}", run),
            Route("/api/runs/{run}/examples", examples),
            Route("/api/events", Streams(root)),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ]
    )
    return PageGuard(app, token)


async def _metrics(root: Path, request: Request) -> Response:
    """Answer Prometheus with the newest rounds."""
    from deploy.pages.adapters import newest_rounds

    try:
        return PlainTextResponse(await to_thread.run_sync(newest_rounds, root))
    except ConfigError as error:
        raise HTTPException(501, str(error)) from None


ADDRESS = "127.0.0.1"
PORT = 8765
"""Default port of the page."""

END_SECONDS = 5.0
"""Longest wait for the end of the server's thread."""


def bind(port: int) -> socket.socket:
    """Return a socket on the port of the loopback address; port 0 is any free one.

    Raises:
        ConfigError: The port is in use.
    """
    try:
        return socket.create_server((ADDRESS, port))  # listens: a browser that is quicker than the server's start waits
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigError(f"port {port} of {ADDRESS}: {reason}; choose another with --port") from None


def make_server(root: Path, token: str) -> uvicorn.Server:
    """Return the server; open streams do not delay its end by more than a second."""
    config = uvicorn.Config(
        make_app(root, token),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        access_log=False,
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def page_address(listener: socket.socket, token: str, runs: Sequence[str]) -> str:
    """Return the address to open, with its token."""
    query = urlencode([*(("run", run) for run in runs), ("token", token)])
    return f"http://{ADDRESS}:{listener.getsockname()[1]}/?{query}"


def serve(
    root: Path, token_file: Path, port: int, runs: Sequence[str], wants_browser: bool | None, out: Console
) -> None:
    """Serve the page of the folder `root` until Ctrl-C or SIGTERM; it shows `runs` first.

    Without a wish (None), a browser is opened only on a terminal of a graphical session.

    Raises:
        ConfigError: The port is in use.
    """
    listener, token = bind(port), stored_token(token_file)
    address = page_address(listener, token, runs)
    _print(out, f"live page of {root}: {address}")
    _print(out, "only this machine can open it; end it with Ctrl-C")
    is_graphical = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if wants_browser or (wants_browser is None and is_graphical and sys.stderr.isatty()):
        with suppress(webbrowser.Error):
            webbrowser.open(address)
    with suppress(KeyboardInterrupt):
        make_server(root, token).run(sockets=[listener])


@contextmanager
def live_page(root: Path, token_file: Path, run: str, out: Console, *, stays: bool) -> Iterator[None]:
    """Serve the page of a run while the block trains it.

    The page has the default port, or any free one. After a successful block it stays until Ctrl-C if `stays` is set.
    """
    try:
        listener = bind(PORT)
    except ConfigError:
        listener = bind(0)
    token = stored_token(token_file)
    server, address = make_server(root, token), page_address(listener, token, [run])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    _print(out, f"live page: {address}")
    try:
        yield
        if stays:
            _print(out, f"the live page stays until Ctrl-C: {address}")
            with suppress(KeyboardInterrupt):
                thread.join()
    finally:
        server.should_exit = True
        thread.join(END_SECONDS)
        _print(out, f"the live page has ended; fedloom ui --run {run} shows the run again")


def _print(out: Console, line: str) -> None:
    out.print(line, soft_wrap=True, markup=False, highlight=False)
