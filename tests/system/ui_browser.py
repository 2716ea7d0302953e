"""Chromium for tests of the live page; missing in CI, it is a failure."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.system.desk import Command, Desk

CHROMIUM = os.environ.get("FEDLOOM_CHROMIUM") or shutil.which("chromium") or ""


def require_chromium() -> str:
    """Return the path of Chromium; skip without it, or fail where CI should have it."""
    if CHROMIUM:
        return CHROMIUM
    reason = "no Chromium; apt-get install chromium, or set FEDLOOM_CHROMIUM"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Sight:
    """Open page with all that went wrong on it."""

    page: Page
    problems: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    bytes: int = 0

    def watch(self) -> None:
        """Record console errors, exceptions, requests and their sizes."""
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium."""
    path = require_chromium()
    with sync_playwright() as playwright:
        args = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=path, args=args)
        yield chromium
        chromium.close()


@contextmanager
def open_page(
    chromium: Browser, address: str, *, width: int = 1280, scheme: str = "light", reduced: bool = False
) -> Iterator[Sight]:
    """Open an address in a context of its own."""
    context = chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce" if reduced else "no-preference",
    )
    sight = Sight(context.new_page())
    sight.watch()
    sight.page.set_default_timeout(30_000)
    sight.page.goto(address)
    yield sight
    context.close()


def serve(desk: Desk, port: int = 0) -> tuple[Command, str]:
    """Start the page over the desk's runs and return its address."""
    command = desk.start("ui", "--port", str(port), "--no-open")
    command.wait_for("live page")
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", command.error())
    assert found
    return command, found[0]


def rounds_shown(page: Page) -> list[str]:
    """Return the rounds in the table of the first chart."""
    details = page.locator("#curves-figures details").first
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    expect(details.locator("tbody tr").first).to_be_visible()
    return [str(text) for text in details.locator("tbody tr td:first-child").all_inner_texts()]
