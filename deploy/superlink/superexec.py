"""Flower's SuperExec, which its SuperLink starts again when it ends, and whose ServerApps outlive it.

Flower starts it once, and ends the ServerApps of a killed one; later runs would wait for ever.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from common.system_calls import ending_with_this

LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.2, 2.0, 30.0  # before another start
STEADY_SECONDS = 60.0  # seconds after which an end counts as the first again

log = logging.getLogger("flwr")


def keep_superexec(superlink: Any) -> None:
    """Let SuperLinks start this SuperExec, and start it again when it ends before them.

    Args:
        superlink: Module of `flower-superlink`.
    """
    command, lifespan = superlink._get_superexec_command, superlink.SuperLinkLifespan
    start: Callable[[Any], None] = lifespan._start_superexec_if_needed

    def start_and_keep(own: Any) -> None:
        start(own)
        threading.Thread(target=_keep, args=(own, start), daemon=True).start()

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


def main() -> None:
    """Run `flower-superexec`, whose ServerApps end with the SuperLink."""
    from flwr.supercore.cli import flower_superexec
    from flwr.supercore.superexec.plugin.base_exec_plugin import BaseExecPlugin

    plugin: Any = BaseExecPlugin  # Flower has no option for it
    superlink, build = os.getppid(), plugin._build_execution_spec

    def build_for_superlink(self: BaseExecPlugin, **options: Any) -> Any:
        return replace(build(self, **options), parent_pid=superlink)

    plugin._build_execution_spec = build_for_superlink
    flower_superexec()


if __name__ == "__main__":
    main()
