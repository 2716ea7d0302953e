"""`make links` finds broken external links."""

import importlib.util
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools.pages import ROOT


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
    spec = importlib.util.spec_from_file_location("check_links", ROOT / "docs" / "check_links.py")
    assert spec
    assert spec.loader
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    found = checker.broken([f"{site}/200", f"{site}/403", f"{site}/404", "http://127.0.0.1:9/"])
    assert list(found) == [f"{site}/404", "http://127.0.0.1:9/"]
    assert found[f"{site}/404"] == "status 404"
