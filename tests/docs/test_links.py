"""`make links` finds broken external links."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.scripts import load


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    """Serve pages named by their status."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_broken_links_are_found(site: str) -> None:
    found = load("check_links").broken([f"{site}/200", f"{site}/403", f"{site}/404", "http://127.0.0.1:9/"])
    assert list(found) == [f"{site}/404", "http://127.0.0.1:9/"]
    assert found[f"{site}/404"] == "status 404"
