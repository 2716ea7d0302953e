"""System calls of Linux that keep a family of processes together; no effect on other systems."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # from linux/prctl.h
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def adopt_orphans(enabled: bool) -> None:
    """Let this process become the parent of its descendants whose own parent has ended."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, int(enabled), 0, 0, 0)


def end_with_parent() -> None:
    """Let the system kill this process when the thread that started it ends."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def ends_with_parent() -> Callable[[], None]:
    """Return a function for a new child, after which the system kills it when this thread's process ends."""
    parent = os.getpid()

    def follow() -> None:
        end_with_parent()
        if os.getppid() != parent:  # it ended in the meantime
            os._exit(1)

    return follow
