"""Work in copies of this process, which share its memory as it was and return bytes."""

import gc
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import IO, NoReturn

from common.errors import RunError
from common.system_calls import end_with_parent

Work = Callable[[], Iterable[bytes]]
"""Work of one copy, which returns any number of parts."""

_LENGTH, _POLL_SECONDS = 8, 0.005


def can_copy() -> bool:
    """Return True if this system can copy a process."""
    return hasattr(os, "fork")


def run_in_copies(works: Sequence[Work], names: Sequence[str]) -> list[list[bytes]]:
    """Do each work in a copy of its own, all at once; return the parts of each.

    Args:
        works: The works.
        names: Name of each, for errors.

    Raises:
        RunError: A copy has ended without a result; the others are ended as well.
    """
    with ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in works]
        copies = {_start(work, output): name for work, output, name in zip(works, outputs, names, strict=True)}
        try:
            while copies:
                _collect(copies)
                time.sleep(_POLL_SECONDS)
        finally:
            for pid in copies:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        return [_read(output) for output in outputs]


def _collect(copies: dict[int, str]) -> None:
    """Remove the copies that have ended.

    Raises:
        RunError: One of them has failed.
    """
    for pid in list(copies):
        ended, status = os.waitpid(pid, os.WNOHANG)
        name = copies.pop(pid) if ended else ""
        if ended and status:
            raise RunError(f"{name}: the process {_reason(status)}; continue with --resume, or with --workers 1")


def _start(work: Work, output: IO[bytes]) -> int:
    pid = os.fork()
    return pid or _work(work, output)


def _work(work: Work, output: IO[bytes]) -> NoReturn:
    """Do the work in this copy and end it; only its parent hears of an interrupt."""
    status = 1
    try:
        end_with_parent()
        gc.freeze()  # a collection would write to all objects, and so copy their pages
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        for part in work():
            output.write(len(part).to_bytes(_LENGTH, "little"))
            output.write(part)
        output.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _read(output: IO[bytes]) -> list[bytes]:
    output.seek(0)
    parts = []
    while header := output.read(_LENGTH):
        parts.append(output.read(int.from_bytes(header, "little")))
    return parts


def _reason(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    return "has failed; its error is above"
