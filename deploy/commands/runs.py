"""Finished runs on this machine: by name, by folder, or the newest."""

import json
from collections.abc import Collection
from pathlib import Path

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.registry import TASKS
from deploy.cli import options as o
from server.artifacts import RunDirectory


def run_of(name: str) -> RunDirectory:
    """A run by its name, or by its folder wherever that lies.

    Raises:
        ConfigError: There is no such run.
    """
    given = Path(name)
    here = (given / "config.toml").exists()
    folder = RunDirectory(given.resolve().parent, given.resolve().name) if here else RunDirectory(o.runs_folder(), name)
    folder.config()
    return folder


def config_of(folder: RunDirectory) -> RunConfig:
    """A run's resolved configuration."""
    return parse(o.flat(folder.config()))


def newest(tasks: Collection[str] = TASKS) -> RunDirectory:
    """The newest completed run of one of these tasks.

    Raises:
        ConfigError: There is none.
    """
    if run := newest_or_none(tasks):
        return run
    alone = next(iter(tasks)) if len(tasks) == 1 else ""
    what, how = (f"{alone} run", f"fedloom up --task {alone}") if alone else ("run", "fedloom up")
    raise ConfigError(f"no completed {what} in {o.runs_folder()}; train one first, for example with `{how}`")


def newest_or_none(tasks: Collection[str] = TASKS) -> RunDirectory | None:
    """As `newest`, or None."""
    results = sorted(o.runs_folder().glob("*/result.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in results:
        result = json.loads(path.read_text("utf-8"))
        if result["status"] == "completed" and result["task"] in tasks:
            return RunDirectory(path.parents[1], path.parent.name)
    return None
