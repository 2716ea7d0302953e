"""Removal of stored runs, into a trash folder or permanently; links and runs in use are refused."""

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import ConfigError
from server.artifacts import LOCK_FILE, RunDirectory

TRASH = ".trash"
"""Folder below the folder of runs that holds removed runs."""

UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


def stored_runs(root: Path) -> list[RunDirectory]:
    """Return the runs in a folder, newest first; links are left out."""
    folders = [path for path in root.glob("[!.]*") if (path / "config.toml").is_file() and not path.is_symlink()]
    return [RunDirectory(root, path.name) for path in sorted(folders, key=lambda path: _changed(path), reverse=True)]


def read_age(text: str) -> float:
    """Return the seconds of an age such as 30d.

    Raises:
        ConfigError: The text is no age.
    """
    if match := re.fullmatch(r"([0-9]{1,6})([hdw])", text):
        return int(match[1]) * UNIT_SECONDS[match[2]]
    raise ConfigError(f"--older-than {text} is not an age; write hours, days or weeks, such as 12h, 30d or 8w")


def select_older(runs: Sequence[RunDirectory], seconds: float) -> list[RunDirectory]:
    """Return the idle runs whose files have not changed for that time."""
    return [run for run in runs if time.time() - _changed(run.path) >= seconds and run.is_idle()]


def find_removable(root: Path, name: str) -> RunDirectory:
    """Return the run of that name.

    Raises:
        ConfigError: There is no such run, its folder is a link, or a process works on it.
    """
    run = RunDirectory(root, name)
    if run.path.is_symlink():
        raise ConfigError(f"{run.path} is a link to a folder elsewhere; remove the link by hand")
    if not (run.path / LOCK_FILE).exists():  # locking would create the folder of a run that does not exist
        run.config()
    with run.lock():
        return run


def remove(runs: Sequence[RunDirectory], root: Path, *, now: bool) -> Iterator[Path]:
    """Remove runs and yield each new place; the old place if nothing is left there.

    Raises:
        ConfigError: A process works on a run, or the trash folder is a link.
    """
    trash = root / TRASH
    if trash.is_symlink() and not now:
        raise ConfigError(f"{trash} is a link to a folder elsewhere; remove the link by hand")
    for run in runs:
        with run.lock():
            if now:
                shutil.rmtree(run.path)
                yield run.path
                continue
            target = trash / run.path.name
            if target.exists():
                target = trash / f"{run.path.name}.{time.time_ns()}"
            trash.mkdir(exist_ok=True)
            run.path.rename(target)
            yield target


def _changed(path: Path) -> float:
    """Return the time of the last change of a run's folder or of its events."""
    return max(file.stat().st_mtime for file in (path, path / "metrics.jsonl") if file.exists())
