"""Starters of ServerApps: Flower's SuperExec for many runs, and a process for the only run.

Flower starts SuperExec once, and ends the ServerApps of a killed one; later runs would wait for ever. Here its SuperLink starts
it again, and its ServerApps outlive it. SuperExec starts a program for each run, which imports PyTorch and Flower first. A
command that owns its SuperLink therefore starts the ServerApp itself, in a process that imports them meanwhile.
"""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

from common.system_calls import ending_with_this

LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.2, 2.0, 30.0  # before another start
STEADY_SECONDS = 60.0  # seconds after which an end counts as the first again

log = logging.getLogger("flwr")


def keep_superexec(superlink: Any) -> None:
    """Let SuperLinks start this SuperExec, and start it again when it ends before them."""
    command, lifespan = superlink._get_superexec_command, superlink.SuperLinkLifespan
    start: Callable[[Any], None] = lifespan._start_superexec_if_needed

    def start_and_keep(server: Any) -> None:
        start(server)
        threading.Thread(target=_keep, args=(server, start), daemon=True).start()

    superlink._get_superexec_command = lambda **options: ending_with_this(
        [sys.executable, "-m", "deploy.superlink.superexec", *command(**options)[1:]]
    )
    lifespan._start_superexec_if_needed = start_and_keep


def _keep(lifespan: Any, start: Callable[[Any], None]) -> None:
    pause, began = FIRST_PAUSE_SECONDS, time.monotonic()
    while (process := lifespan.superexec_process) is not None:  # None: the SuperLink ends
        if process.poll() is None:
            time.sleep(LOOK_SECONDS)
            continue
        pause = FIRST_PAUSE_SECONDS if time.monotonic() - began > STEADY_SECONDS else pause
        log.warning("SuperExec ended with exit code %s; started again in %g s", process.returncode, pause)
        time.sleep(pause)
        pause, began = min(pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS), time.monotonic()
        if lifespan.superexec_process is not None:
            start(lifespan)


ONLY_RUN = "--only-run"
"""First word of the command line that trains in the only run of a SuperLink, without SuperExec."""

POLL_SECONDS = 0.05


def run_superexec() -> None:
    """Run `flower-superexec`, whose ServerApps end with the SuperLink."""
    from flwr.supercore.cli import flower_superexec
    from flwr.supercore.superexec.plugin.base_exec_plugin import BaseExecPlugin

    plugin: Any = BaseExecPlugin  # Flower has no option for it
    superlink, build = os.getppid(), plugin._build_execution_spec

    def build_for_superlink(self: BaseExecPlugin, **options: Any) -> Any:
        return replace(build(self, **options), parent_pid=superlink)

    plugin._build_execution_spec = build_for_superlink
    flower_superexec()


def train_in_only_run(words: list[str]) -> None:
    """Wait for the run of a SuperLink and train; `words` are its address and its certificate authority."""
    from flwr.supercore.logger import mirror_output_to_queue
    from flwr.superlink.runtime import run_serverapp

    parser = argparse.ArgumentParser(description=train_in_only_run.__doc__)
    parser.add_argument("address", help="host:port of the Runtime API")
    parser.add_argument("--ca", type=Path, help="certificate authority; none for an unencrypted SuperLink")
    options = parser.parse_args(words)
    ca = options.ca.read_bytes() if options.ca else None
    token = _await_run(options.address, ca)
    lines: Queue[str | None] = Queue()
    mirror_output_to_queue(lines)
    run_serverapp(options.address, lines, token, ca is None, ca, os.getppid(), runtime_dependency_install=False)


def _await_run(address: str, ca: bytes | None) -> str:
    """Return the token of the first run of the SuperLink."""
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.constant import TaskType
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
    from flwr.supercore.retry import make_simple_http_retry_invoker
    from flwr.superlink.runtime import RuntimeHttpClient

    client = RuntimeHttpClient.from_server_address(
        address,
        ca is None,
        ca,
        [RuntimeVersionHttpInterceptor(component_name="SuperExec")],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    request = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    try:
        while not (token := str(client.AcquireTask(request).token)):
            time.sleep(POLL_SECONDS)
    finally:
        client.close()
    return token


if __name__ == "__main__":
    if sys.argv[1:2] == [ONLY_RUN]:
        train_in_only_run(sys.argv[2:])
    else:
        run_superexec()
