"""`fedloom` commands as processes: in the background, or with the figures of their start."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from deploy.federation.fork_server import flower_environment
from studies.harness.study import ROOT

HEAVY = frozenset({"torch", "torch_geometric", "sklearn", "scipy", "pandas", "pyarrow", "flwr", "matplotlib"})
"""Packages that a command that trains nothing does without."""

PROGRAM = """
import json, resource, runpy, sys
from pathlib import Path
code = 0
try:
    runpy.run_module("deploy.cli", run_name="__main__")
except SystemExit as exit:
    code = exit.code or 0
used = resource.getrusage(resource.RUSAGE_SELF)
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
imported = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([code, used.ru_utime, used.ru_stime, int(peak.split()[1]) / 1024, imported]), file=sys.stderr)
"""


@dataclass(frozen=True)
class Start:
    """Figures of a command that has ended.

    Args:
        code: Exit code.
        user: Processor seconds of its own code.
        system: Processor seconds of the system for it.
        megabytes: Largest resident memory.
        heavy: Heavy packages that it has imported.
    """

    code: int
    user: float
    system: float
    megabytes: float
    heavy: frozenset[str]


def time_start(words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Start:
    """Run a command to its end in that folder; the environment gains these variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    program = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    code, user, system, megabytes, imported = json.loads(done.stderr.splitlines()[-1])
    return Start(code, user, system, megabytes, HEAVY.intersection(imported))


def start_command(stack: ExitStack, home: Path, name: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a command in that folder with its output in `NAME.log`; the end of the stack ends it."""
    log = stack.enter_context((home / f"{name}.log").open("wb"))
    variables = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "FLWR_HOME": str(home / ".flwr")}
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.cli", *words],
        cwd=home,
        env=flower_environment(variables),
        stdout=log,
        stderr=log,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process
