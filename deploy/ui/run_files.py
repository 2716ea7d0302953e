"""Files of runs for the live page: regular ones, never behind a link, read with a limit."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from common.errors import ConfigError
from common.options import leaves
from server.artifacts import RunDirectory

MAX_BYTES = 16_000_000
"""Size above which a whole file is not read."""

MAX_CONFIG = 1_000_000  # bytes of config.toml


def is_run_id(name: str) -> bool:
    """Return True if the name may be that of a run's folder."""
    try:
        RunDirectory(Path(), name)
    except ConfigError:
        return False
    return True


def run_ids(root: Path) -> list[str]:
    """Return the names of all run folders; links are left out."""
    try:
        with os.scandir(root) as entries:
            return [one.name for one in entries if is_run_id(one.name) and one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def open_file(root: Path, run: str, name: str) -> BinaryIO | None:
    """Open a file of a run; None if it is missing, not a regular file, or behind a link.

    Args:
        root: Folder of runs.
        run: Id of the run.
        name: Name of the file.
    """
    if not is_run_id(run):
        return None
    try:
        folder = os.open(root / run, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return open(handle, "rb")


def read_file(root: Path, run: str, name: str, limit: int = MAX_BYTES) -> bytes | None:
    """Return a file of a run; None if it cannot be opened, or holds more than `limit` bytes."""
    if (file := open_file(root, run, name)) is None:
        return None
    with file:
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def read_config(root: Path, run: str) -> dict[str, Any] | None:
    """Return the dotted keys of a run's config.toml; None if it is missing or damaged."""
    try:
        return dict(leaves(tomllib.loads((read_file(root, run, "config.toml", MAX_CONFIG) or b"\0").decode()), ""))
    except (ValueError, RecursionError):
        return None


def stamp(root: Path, run: str) -> tuple[int, ...]:
    """Return numbers that change with the files of a run."""
    numbers: list[int] = []
    for name in ("metrics.jsonl", "result.json", "config.toml"):
        try:
            about = os.lstat(root / run / name)
            numbers += [about.st_size, about.st_mtime_ns]
        except OSError:
            numbers += [-1, -1]
    return tuple(numbers)
