"""Kinds of faults: whom they hit, and who starts it again."""

import time
from collections.abc import Callable

import psutil

from benchmarks.faults.federation import Federation, words_of

PAUSE_SECONDS = 60.0
RESTART_SECONDS = 3.0  # seconds after which a service manager starts a killed client or command again

SERVER_APP, SUPERLINK, SUPEREXEC = "flwr-serverapp", "deploy.guarded_superlink", "flower-superexec"


def kill_process(word: str) -> Callable[[Federation], None]:
    """Return a fault that kills one process of the server; `up` itself starts it again."""

    def strike(federation: Federation) -> None:
        federation.find(word)[-1].kill()

    return strike


def kill_client(federation: Federation) -> None:
    """Kill a client, and start it again."""
    client = federation.find("deploy.cli join")[-1]
    words, environment = words_of(client), client.environ()
    client.kill()
    time.sleep(RESTART_SECONDS)
    federation.restart(words, environment)


def kill_command(federation: Federation) -> None:
    """Kill `up` itself, and start it again with `--resume`."""
    federation.family()
    federation.command.kill()
    federation.command.wait()
    time.sleep(RESTART_SECONDS)
    federation.start(resume=True)


def kill_all(federation: Federation) -> None:
    """Kill every process at once, and start the command again."""
    for process in federation.family():
        process.kill()
    federation.command.wait()
    time.sleep(RESTART_SECONDS)
    federation.start(resume=True)


def pause_all(federation: Federation) -> None:
    """Suspend every process for a minute, as a suspended machine does."""
    family: set[psutil.Process] = federation.family()
    for process in family:
        process.suspend()
    time.sleep(PAUSE_SECONDS)
    for process in family:
        process.resume()


KINDS: dict[str, Callable[[Federation], None]] = {
    "ServerApp": kill_process(SERVER_APP),
    "SuperLink": kill_process(SUPERLINK),
    "SuperExec": kill_process(SUPEREXEC),
    "up": kill_command,
    "everything": kill_all,
    "client": kill_client,
    "pause": pause_all,
}
"""Name of a fault -> function that inflicts it."""

OWN_SECONDS = {"up": RESTART_SECONDS, "everything": RESTART_SECONDS, "pause": PAUSE_SECONDS, "client": 0.0}
"""Part of a stall that the fault itself lasts, which is subtracted."""
