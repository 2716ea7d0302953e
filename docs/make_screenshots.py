"""Make docs/assets/ui.png: the live page of a run of the embedded data, in Chromium.

Usage: python docs/make_screenshots.py
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent / "assets" / "ui.png"
MAX_BYTES = 200_000
COMMAND = [sys.executable, "-m", "deploy.cli"]


def main() -> None:
    """Train a run, serve the page and store its picture."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FEDLOOM_RUNS": f"{folder}/runs", "PYTHONPATH": str(Path(__file__).parents[1])}
        train = [*COMMAND, "simulate", "--rounds", "30", "--clients", "8", "--run-id", "homes"]
        subprocess.run(train, cwd=folder, env=environment, check=True)
        serve = [*COMMAND, "ui", "--port", "0", "--no-open", "--run", "homes"]
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
