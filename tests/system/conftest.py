"""Desk of a system test, and a table of homes."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.writer import write_homes
from common.tasks.rules.demo import demo_catalogue
from tests.system.desk import Desk


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """Restore SIGINT, which background jobs of a shell ignore; commands inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Yield a desk; its processes are ended after the test."""
    desk = Desk(tmp_path)
    yield desk
    for command in desk.commands:
        command.family()
        if command.process.poll() is None:
            command.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                command.process.wait(20)
        for process in command.left_behind():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        command.process.wait(5)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table of forty homes."""
    path = tmp_path_factory.mktemp("data") / "homes.csv"
    write_homes(path, demo_homes(0, 40, seed=1), demo_catalogue())
    return path
