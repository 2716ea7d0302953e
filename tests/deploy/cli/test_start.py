"""Start of the command line in fresh interpreters: little processor time and memory, no heavy package."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.run_folders import make_run

HEAVY = ("torch", "torch_geometric", "sklearn", "scipy", "pandas", "pyarrow", "flwr", "matplotlib")
MEGABYTES = 60
TRIES = 3  # other processes on the machine slow a single start

PROGRAM = """
import json, resource, runpy, sys
from pathlib import Path
code = 0
try:
    runpy.run_module("deploy.cli", run_name="__main__")
except SystemExit as exit:
    code = exit.code or 0
seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
imported = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([code, seconds, int(peak.split()[1]) / 1024, imported]), file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a working directory with a finished run and the folder of its server."""
    make_run(tmp_path / "runs", "r1", rounds=3)
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "order.toml").write_text('port = 9092\n[config]\nrun-id = "r1"\n')
    return tmp_path


def starts(folder: Path, words: str) -> Iterator[tuple[int, float, float, set[str]]]:
    """Yield exit code, processor seconds, peak memory (RSS) in MB and imported packages of each of several starts."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "FEDLOOM_RUNS": str(folder / "runs")}
    for _ in range(TRIES):
        command = [sys.executable, "-c", PROGRAM, *words.split()]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        found: list[Any] = json.loads(done.stderr.splitlines()[-1])
        yield found[0], found[1], found[2], set(found[3])


@pytest.mark.parametrize(
    ("limit", "code", "words"),
    [
        (0.5, 0, "--help"),
        (0.5, 0, "--version"),
        (0.5, 2, "--hepl"),
        (0.5, 2, "upp"),
        (0.8, 0, "keys --help"),
        (0.8, 2, "keys register absent.pub"),
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
    for actual, seconds, megabytes, imported in starts(folder, words):
        assert actual == code
        assert not imported.intersection(HEAVY)
        if seconds < limit and megabytes < MEGABYTES:
            return
    pytest.fail(f"{seconds:.2f} s and {megabytes:.0f} MB at the last of {TRIES} starts")
