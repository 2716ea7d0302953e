"""Desk of a system test, and a table of homes."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes, write_homes
from common.tasks.rules.vocabulary import demo_catalogue
from server.record.folder import RunDirectory
from tests.support.exported_runs import export_of
from tests.support.run_folders import make_forecasts, make_run
from tests.support.ui import a_round, a_start, write_run
from tests.system.desk import Desk

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
    write_homes(path, Homes(demo_homes(0, 40, seed=1), demo_catalogue()))
    return path


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.fixture
def export(trained_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return an exporter of a run of a task; further arguments are options of the command."""
    monkeypatch.setenv("FEDLOOM_RUNS", str(trained_runs))
    return lambda task, *words: export_of(trained_runs, task, tmp_path / f"{task}.onnx", *words)


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """Yield Chromium."""
    from tests.system.ui_browser import browser

    with browser() as found:
        yield found


@pytest.fixture
def live(desk: Desk) -> Iterator[RunDirectory]:
    """Write a run that has begun and hold its lock, as its server does."""
    folder = write_run(desk.folder / "runs", "live", [a_start("live", 40)], rounds=40)
    with folder.lock():
        yield folder


@pytest.fixture
def full_desk(desk: Desk, live: RunDirectory) -> None:
    """Write runs that fill every section."""
    root = desk.folder / "runs"
    make_run(root, "one")
    make_forecasts(root, "two")
    spent = {"arm": 1.0, "p_arm": 0.4, "cost": 0.01, "left": 0.9, "reward": 0.1}
    for number in range(1, 6):
        live.append(a_round(number, 40, server=spent, clusters={"client-0": number % 2, "client-1": 1}))
