"""Start of the command line in fresh interpreters: little processor time and memory, no heavy package."""

from pathlib import Path

import pytest

from studies.harness.command import time_start
from tests.support.run_folders import make_run

MEGABYTES = 60
TRIES = 3  # other processes on the machine slow a single start


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a working directory with a finished run and the folder of its server."""
    make_run(tmp_path / "runs", "r1", rounds=3)
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "order.toml").write_text('port = 9092\n[config]\nrun-id = "r1"\n')
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "code", "words"),
    [
        (0.5, 0, "--help"),
        (0.5, 0, "--version"),
        (0.5, 2, "--hepl"),
        (0.5, 2, "upp"),
        (0.8, 0, "keys --help"),
        (0.8, 2, "nodes add absent.pub"),
        (0.8, 0, "nodes list"),
        (0.8, 0, "config privacy"),
        (0.8, 0, "completion bash"),
        (0.8, 0, "runs"),
        (0.8, 0, "runs show r1"),
        (0.8, 0, "status --state-dir ."),
        (0.8, 0, "status --home server"),
        (0.8, 2, "stop"),
    ],
)
def test_a_light_command_starts_fast_and_imports_nothing_heavy(
    limit: float, code: int, words: str, folder: Path
) -> None:
    for _ in range(TRIES):
        start = time_start(words.split(), folder, {"FEDLOOM_RUNS": str(folder / "runs")})
        assert start.code == code
        assert not start.heavy
        if start.user < limit and start.megabytes < MEGABYTES:
            return
    pytest.fail(f"{start.user:.2f} s and {start.megabytes:.0f} MB at the last of {TRIES} starts")
