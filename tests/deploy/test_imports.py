"""Light start of the command line, in fresh interpreters: no heavy package, little processor time and memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = ("torch", "torch_geometric", "sklearn", "scipy", "pandas", "pyarrow", "flwr", "matplotlib")
CPU_SECONDS, MEGABYTES = 0.5, 80  # of `fedloom --help`
FEW_TRIES = 3  # other processes on the machine slow a single start

PROGRAM = """
import json, resource, runpy, sys
from pathlib import Path
try:
    runpy.run_module("deploy.cli", run_name="__main__")
except SystemExit as exit:
    assert not exit.code, exit.code
used = resource.getrusage(resource.RUSAGE_SELF)
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
imported = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([used.ru_utime + used.ru_stime, int(peak.split()[1]) / 1024, imported]), file=sys.stderr)
"""


def run(folder: Path, *words: str) -> tuple[float, float, set[str]]:
    """Return processor seconds, peak memory (RSS) in MB and the imported packages of a command."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stderr.splitlines()[-1])
    return found[0], found[1], set(found[2])


@pytest.fixture(autouse=True)
def source_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "keys node node.key",
        "keys server",
        "budget",
        "budget --help",
        "tasks",
        "methods",
        "config --list",
        "up --help",
        "recommend --help",
        "forecast --help",
    ],
)
def test_a_light_command_imports_nothing_heavy(words: str, tmp_path: Path) -> None:
    *_, imported = run(tmp_path, *words.split())
    assert not imported.intersection(HEAVY)


def test_help_is_quick_and_small(tmp_path: Path) -> None:
    seconds, megabytes, _ = min(run(tmp_path, "--help") for _ in range(FEW_TRIES))
    assert seconds <= CPU_SECONDS
    assert megabytes <= MEGABYTES


@pytest.mark.parametrize("task", ["traffic", "ratings", "sessions"])
def test_a_client_of_generated_data_imports_only_what_it_uses(task: str, tmp_path: Path) -> None:
    program = f"""
import json, sys
import deploy.commands.resident
from client.data.read import read_partition
from client.tasks.registry import build_learner
from common.config.parse import parse
build_learner(parse({{"task": "{task}"}}), read_partition("{task}", "demo", (0, 4)))
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    unused = {"torch_geometric", "sklearn", "pandas", "pyarrow", "matplotlib", "fastapi"}
    assert not unused.intersection(json.loads(done.stdout))
