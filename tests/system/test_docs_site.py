"""The documentation site, built and opened in Chromium."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.system.desk import ROOT
from tests.system.ui_browser import open_page

pytestmark = [pytest.mark.system, pytest.mark.browser]
SOURCES = ("fedloom", "deploy", "server", "client", "common")
MOST_SECONDS = 30
WIDTHS = (390, 1280)  # pixels of a phone and of a desk

BROKEN_OPTIONS = """() => [...document.querySelectorAll("article :is(p, li) code")].flatMap((code) => {
  const text = code.firstChild, start = code.textContent.search(/--\\w/);
  if (code.closest("pre") || start < 0 || code.textContent.length > 30) return [];
  const [dash, name] = [start + 1, start + 2].map((place) => {
    const range = document.createRange();
    range.setStart(text, place);
    range.setEnd(text, place + 1);
    return range.getBoundingClientRect().top;
  });
  return name > dash ? [code.textContent] : [];
})"""
"""Short inline code with a line break behind `--`."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in a folder of its own and return its root."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "zensical.toml", folder)
    for name in SOURCES:
        (folder / name).symlink_to(ROOT / name)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--clean", "--strict"]
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    assert time.monotonic() - start < MOST_SECONDS
    return folder / "site"


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Serve the site to this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_every_page_fits_each_screen_and_asks_no_other_host(built: Path, address: str, chromium: Browser) -> None:
    pages = sorted(path.relative_to(built).as_posix() for path in built.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 40
    with open_page(chromium, "about:blank") as sight:
        for page in pages:
            sight.page.goto(address + page)
            expect(sight.page.locator("article h1").first).to_be_visible()
            sight.page.evaluate("document.querySelectorAll('article details').forEach((one) => { one.open = true; })")
            for width in WIDTHS:
                sight.page.set_viewport_size({"width": width, "height": 900})
                assert sight.page.evaluate("document.documentElement.scrollWidth") <= width, page
                assert sight.page.evaluate(BROKEN_OPTIONS) == [], page
        assert sight.hosts <= {address.split("/")[2], ""}
        assert sight.problems == []


@pytest.mark.parametrize("study", ["rules", "sessions", "traffic", "ratings", "markets"])
def test_a_results_page_begins_with_its_verdict_and_figure(address: str, chromium: Browser, study: str) -> None:
    with open_page(chromium, f"{address}results/{study}.html") as sight:
        article = sight.page.locator("article")
        expect(article.get_by_text("Verdict.")).to_be_in_viewport()
        expect(article.locator("img").first).to_be_in_viewport(ratio=0.9)
        expect(article.locator("table").first).to_be_hidden()
        article.locator("details > summary, a:text('Table of')").first.click()  # folded, or on a page of its own
        expect(article.locator("table").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_follow_the_browser(address: str, chromium: Browser, scheme: str) -> None:
    with open_page(chromium, address, scheme=scheme) as sight:
        colour = sight.page.evaluate("getComputedStyle(document.body).backgroundColor")
        red = int(colour.split("(")[1].split(",")[0])
        assert (red > 200) == (scheme == "light")
        assert sight.page.evaluate("getComputedStyle(document.body).fontFamily").startswith("system-ui")
