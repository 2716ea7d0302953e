"""Finished runs on this machine: by name, by folder, or the newest."""

import json
from collections.abc import Collection
from pathlib import Path

from common.errors import ConfigError
from common.options import Scalar
from common.tasks.registry import TASKS
from server.artifacts import RunDirectory
from server.settings import ServerSettings


def runs_folder() -> Path:
    """Return the absolute path of the folder of runs; other processes receive it."""
    return ServerSettings().runs.resolve()


def find_run(name: str) -> RunDirectory:
    """Return a run by its name, or by its folder anywhere.

    Raises:
        ConfigError: The run does not exist.
    """
    given = Path(name)
    is_folder = (given / "config.toml").exists()
    folder = RunDirectory(given.resolve().parent, given.resolve().name) if is_folder else _named(name)
    folder.config()
    return folder


def stored_options(folder: RunDirectory) -> dict[str, Scalar]:
    """Return the dotted keys of a run's config.toml.

    Raises:
        ConfigError: The run does not exist, or the file holds other values than options.
    """
    stored = folder.config()
    if not all(isinstance(value, (bool, int, float, str)) for value in stored.values()):
        raise ConfigError(f"{folder.path / 'config.toml'} holds values that are no options; restore the file")
    return dict(stored)


def newest(tasks: Collection[str] = TASKS) -> RunDirectory:
    """Return the newest completed run of one of the tasks.

    Raises:
        ConfigError: No such run has completed.
    """
    if run := newest_or_none(tasks):
        return run
    alone = next(iter(tasks)) if len(tasks) == 1 else ""
    what, how = (f"{alone} run", f"fedloom up --task {alone}") if alone else ("run", "fedloom up")
    raise ConfigError(f"no completed {what} in {runs_folder()}; train one first, for example with `{how}`")


def newest_or_none(tasks: Collection[str] = TASKS) -> RunDirectory | None:
    """Return the newest completed run of one of the tasks; None if there is none."""
    results = sorted(runs_folder().glob("*/result.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in results:
        result = json.loads(path.read_text("utf-8"))
        if result["status"] == "completed" and result["task"] in tasks:
            return RunDirectory(path.parents[1], path.parent.name)
    return None


def _named(name: str) -> RunDirectory:
    return RunDirectory(runs_folder(), name)
