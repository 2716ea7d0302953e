"""Make docs/assets/ui.png, the live page of a run in Chromium, and its lines in README.md.

Usage: python docs/make_screenshots.py
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent / "assets" / "ui.png"
README = Path(__file__).parents[1] / "README.md"
BEFORE = "Each round prints a line, the end a verdict:\n\n```\n"
"""Text of README.md before the lines."""
WIDTH = 120
MAX_BYTES = 200_000
COMMAND = [sys.executable, "-m", "deploy.cli"]


def main() -> None:
    """Train a run, store its lines, serve the page and store its picture."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FEDLOOM_RUNS": f"{folder}/runs", "PYTHONPATH": str(Path(__file__).parents[1])}
        train = [*COMMAND, "up", "--task", "sessions", "--run-id", "shop"]
        done = subprocess.run(
            train, cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        write_lines(done.stdout)
        serve = [*COMMAND, "ui", "--port", "0", "--no-open", "--run", "shop"]
        server = subprocess.Popen(serve, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr
            found = re.search(r"http://\S+", server.stderr.readline())
            assert found, "the page did not start"
            take(found[0])
        finally:
            server.terminate()
            server.wait(10)
    assert TARGET.stat().st_size <= MAX_BYTES, TARGET.stat().st_size


def write_lines(printed: str) -> None:
    """Write the line of the last round and the verdict into README.md."""
    *_, last = re.findall(r"^round .*", printed, re.M)
    [(label, gap, verdict)] = re.findall(r"^(verdict)( +)(.*)", printed, re.M)
    lines = [last, *textwrap.wrap(f"{label}{gap}{verdict}", WIDTH, subsequent_indent=" " * len(label + gap))]
    before, mark, rest = README.read_text("utf-8").partition(BEFORE)
    assert mark, "README.md lacks the text before the lines"
    README.write_text("".join([before, mark, "\n".join(lines), "\n```", rest.partition("\n```")[2]]), "utf-8")


def take(address: str) -> None:
    """Store the picture of a page."""
    path = os.environ.get("FEDLOOM_CHROMIUM") or shutil.which("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        page = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light").new_page()
        page.goto(address)
        page.locator("canvas").first.wait_for()
        page.wait_for_timeout(1000)
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
