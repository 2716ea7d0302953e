"""System calls of Linux that keep a family of processes together; no effect on other systems."""

import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Iterable

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36  # from linux/prctl.h
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # from malloc.h
LARGE_BYTES = 2**16
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_FOLLOW = (
    f"import ctypes, os, sys; ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGKILL)}, 0, 0, 0);"
    " os.getppid() == int(sys.argv[1]) or os._exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)


def adopt_orphans(enabled: bool) -> None:
    """Let this process become the parent of its descendants whose own parent has ended."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, int(enabled), 0, 0, 0)


def is_linux() -> bool:
    """Return True if these calls have an effect here."""
    return _LIBC is not None


def return_large_blocks() -> None:
    """Let glibc give freed blocks of `LARGE_BYTES` back to the system, and use one arena for all threads.

    A process that takes large replies in several threads would keep the memory of its largest round.
    """
    if set_option := getattr(_LIBC, "mallopt", None):
        set_option(_M_MMAP_THRESHOLD, LARGE_BYTES)
        set_option(_M_ARENA_MAX, 1)


def name_process(name: str) -> None:
    """Show the first 15 bytes of a name instead of the program's in lists of processes."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def end_with_parent() -> None:
    """Let the system kill this process when the thread that started it ends."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_with(pid: int) -> None:
    """Kill this process when another one ends, also one that is not its parent."""
    if _LIBC is None:
        return
    try:
        other = os.pidfd_open(pid)
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=_end_after, args=(other,), daemon=True).start()


def _end_after(other: int) -> None:
    select.select([other], [], [])
    os.kill(os.getpid(), signal.SIGKILL)


def ending_with_this(command: Iterable[str]) -> list[str]:
    """Return the command of a child that the system kills when this process ends.

    A process of its own sets this and becomes the program: code between fork and exec is unsafe in processes with threads.
    """
    words = list(command)
    return [sys.executable, "-I", "-S", "-c", _FOLLOW, str(os.getpid()), *words] if _LIBC is not None else words
