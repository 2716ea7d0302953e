"""Server of the live page on this machine's loopback address, in this thread or in one of its own."""

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from rich.console import Console

from common.errors import ConfigError
from deploy.ui.app import make_app
from deploy.ui.guard import stored_token

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
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen()  # a browser that is quicker than the server's start waits
    except OSError as error:
        listener.close()
        raise ConfigError(f"port {port} of {ADDRESS}: {error.strerror}; choose another with --port") from None
    return listener


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


def open_browser(address: str, wanted: bool | None) -> None:
    """Open the page; without a wish only on a terminal of a graphical session."""
    is_graphical = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if wanted or (wanted is None and is_graphical and sys.stderr.isatty()):
        with suppress(webbrowser.Error):
            webbrowser.open(address)


def serve(
    root: Path, token_file: Path, port: int, runs: Sequence[str], wants_browser: bool | None, out: Console
) -> None:
    """Serve the page until Ctrl-C or SIGTERM.

    Args:
        root: Folder of runs.
        token_file: Private file of the token.
        port: Port to listen on.
        runs: Runs that the page shows first.
        wants_browser: True to open a browser, False not to; None decides by the session.
        out: Console for the address.

    Raises:
        ConfigError: The port is in use.
    """
    listener, token = bind(port), stored_token(token_file)
    address = page_address(listener, token, runs)
    _print(out, f"live page of {root}: {address}")
    _print(out, "only this machine can open it; end it with Ctrl-C")
    open_browser(address, wants_browser)
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
