"""Kinds of faults: whom they hit, and who starts it again."""

import time
from collections.abc import Callable

import psutil

from studies.faults.apart import Submitted
from studies.faults.federation import Federation

PAUSE_SECONDS = 60.0
RESTART_SECONDS = 3.0  # seconds after which a service manager starts a killed command again
SERVE_RESTART_SECONDS = 10.0  # RestartSec of deploy/systemd/fedloom-server.service


def kill_process(name: str) -> Callable[[Federation], None]:
    """Return a fault that kills one process; `up` itself starts it again."""

    def strike(federation: Federation) -> None:
        federation.find(name)[-1].kill()

    return strike


def kill_command(seconds: float) -> Callable[[Federation], None]:
    """Return a fault that kills the command, which is started again after so many seconds."""

    def strike(federation: Federation) -> None:
        federation.command.kill()
        federation.command.wait()
        time.sleep(seconds)
        federation.restart()

    return strike


def kill_all(federation: Federation) -> None:
    """Kill every process at once, and start the command again."""
    for process in federation.family():
        process.kill()
    federation.command.wait()
    time.sleep(RESTART_SECONDS)
    federation.restart()


def kill_superexec(federation: Federation) -> None:
    """Kill SuperExec, and wait until the SuperLink has started another."""
    assert isinstance(federation, Submitted)
    [killed] = federation.superexec()
    killed.kill()
    federation.wait(lambda: any(process != killed for process in federation.superexec()))


def pause_all(federation: Federation) -> None:
    """Suspend every process for a minute, as a suspended machine does."""
    family: set[psutil.Process] = federation.family()
    for process in family:
        process.suspend()
    time.sleep(PAUSE_SECONDS)
    for process in family:
        process.resume()


KINDS: dict[str, Callable[[Federation], None]] = {
    "client": kill_process("client-"),
    "ServerApp": kill_process("the ServerApp"),
    "SuperLink": kill_process("the SuperLink"),
    "up": kill_command(RESTART_SECONDS),
    "everything": kill_all,
    "SuperExec": kill_superexec,
    "serve": kill_command(SERVE_RESTART_SECONDS),
    "pause": pause_all,
}
"""Name of a fault -> function that inflicts it."""

OWN_SECONDS = {
    "up": RESTART_SECONDS,
    "everything": RESTART_SECONDS,
    "serve": SERVE_RESTART_SECONDS,
    "pause": PAUSE_SECONDS,
}
"""Part of a stall that the fault itself lasts, which is subtracted."""
