"""Fork server: a process with the imports of others, so that its copies start quickly.

`python -m deploy.federation.fork_server` reads a line per task to import or copy to start, and answers the latter
with the copy's process id. A copy runs a module as `python -m` does. It is a child of the process that ordered it,
and ends with it. It needs Linux. The environment of Flower's programs is here too.
"""

import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from common.hosts import spare_this_machine
from common.system_calls import end_with_parent, ending_with_this, is_linux, name_process


def flower_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a Flower process, based on that of this process.

    Telemetry and installations at run time are off; programs of this Python come first.
    """
    programs = str(Path(sys.executable).parent)
    quiet = ("FLWR_DISABLE_UPDATE_CHECK", "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION")
    environment = {
        **os.environ,
        **dict.fromkeys(quiet, "1"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "GRPC_VERBOSITY": "ERROR",  # else each failed handshake is a line of the log
        "PATH": os.pathsep.join((programs, os.environ.get("PATH", os.defpath))),
        **(extra or {}),
    }
    spare_this_machine(environment)
    return environment


SUPERLINK = "flwr.superlink.cli", "flwr.superlink.main"
"""Imports of the SuperLink, which a server starts first."""
SERVER_APP = "flwr.superlink.runtime", "server.app"
"""Further imports of the ServerApp, made while the SuperLink starts.

A ServerApp that resumes needs no PyTorch.
"""
CLIENT = "client.app", "deploy.federation.client"
"""Further imports of clients."""

ADOPTION_SECONDS = 0.001
LOST = -1
"""Exit code of a copy whose end somebody else has observed."""


@dataclass(frozen=True)
class CopyOrder:
    """Copy to start."""

    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    log: str


@dataclass
class Copy:
    """Running copy, a child of this process."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, or the negative number of the signal that ended it; None while it runs."""
        if self.returncode is None:
            try:
                found, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if found else None
            except ChildProcessError:
                self.returncode = LOST
        return self.returncode


class ForkServer:
    """Fork server that imports while this process does other work; a killed one is started again.

    This process must adopt orphans before the first copy.
    """

    def __init__(self) -> None:
        self._task = ""
        self._process = self._start() if is_linux() else None

    def close(self) -> None:
        """End it; its copies stay."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    @property
    def pid(self) -> int:
        """Its process id; 0 where there is none."""
        return self._process.pid if self._process else 0

    def load(self, task: str) -> None:
        """Import what clients and the models of a task need, after all else."""
        self._task = task
        with suppress(OSError):  # a killed one; the first copy starts it again
            self._send(task)

    def copy(self, order: CopyOrder) -> Copy | None:
        """Start a copy; return None if there is none, and the module must be started anew."""
        if self._process is None or self._process.stdout is None:
            return None
        with suppress(OSError, ValueError):
            self._send(asdict(order))
            return Copy(int(self._process.stdout.readline()))
        self.close()
        self._process = self._start()
        if self._task:
            self.load(self._task)
        return None

    def _send(self, message: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ending_with_this([sys.executable, "-m", "deploy.federation.fork_server"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=flower_environment({"OMP_NUM_THREADS": "1"}),
            start_new_session=True,
        )


def main() -> None:
    """Import without a thread, which no copy would have; then answer lines. A copy leaves the loop."""
    owner = os.getppid()
    _import(SUPERLINK)
    while line := sys.stdin.buffer.readline():
        message = json.loads(line)
        if isinstance(message, str):
            _load(message)
        elif _is_copy(owner):
            _run(CopyOrder(**message))
            return
        _import(SERVER_APP)


def _import(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(module)


def _load(task: str) -> None:
    """Build the learner of a small client, which imports and computes what all clients share."""
    _import((*SERVER_APP, *CLIENT))
    from client.data.read import read_all
    from client.tasks.registry import CLIENT_TASKS, build_learner
    from common.config.run import RunConfig

    if CLIENT_TASKS[task].generate:
        build_learner(RunConfig(task=task), read_all(task, "demo:0-1"))
    gc.freeze()  # a collection would copy the pages that all share


def _is_copy(owner: int) -> bool:
    """Start a copy; return True in it once `owner` has adopted it, and False here."""
    receiver, sender = os.pipe()
    go_between = os.fork()
    if go_between:
        os.waitpid(go_between, 0)  # only now is the copy a child of its owner
        os.write(sys.stdout.fileno(), os.read(receiver, 20))
        os.close(receiver)
        os.close(sender)
        return False
    parent = os.getpid()
    copy = os.fork()
    if copy:
        os.write(sender, b"%d\n" % copy)
        os._exit(0)
    os.close(receiver)
    os.close(sender)
    while os.getppid() == parent:
        time.sleep(ADOPTION_SECONDS)
    end_with_parent()
    if os.getppid() != owner:
        os._exit(1)
    return True


def _run(order: CopyOrder) -> None:
    os.setsid()
    name_process(order.name)
    os.chdir(order.folder)
    sys.path[0] = order.folder
    with Path(os.devnull).open("rb") as nothing, Path(order.log).open("ab") as log:
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source.fileno(), target)
    os.environ.clear()
    os.environ.update(order.environment)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    sys.argv = [order.module, *order.arguments]
    runpy.run_module(order.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
