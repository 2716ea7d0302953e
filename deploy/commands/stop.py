"""`fedloom stop`: end a federation of this folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli import options as o

if TYPE_CHECKING:
    from server.record.process import ProcessRecord


def stop(
    home: Annotated[
        Path | None,
        typer.Option(help="Stop the server of this folder; default: those of `serve` and `up` in .fedloom."),
    ] = None,
    json: o.AsJson = False,
) -> None:
    """Stop a federation of this folder.

    Ends a running `fedloom serve` or `fedloom up` with its SuperLink and its ServerApp, and those that a killed command has
    left. Each is found by its recorded process id and start time, never by its name. Finished rounds are kept.
    """
    from dataclasses import asdict

    from common.errors import ConfigError
    from common.text import printable
    from deploy.cli.output import note, print_object, say
    from deploy.federation.status import find_servers, stop_federation

    stopped: dict[Path, list[ProcessRecord]] = {}
    for folder in [home] if home else find_servers(o.LOCAL):
        stopped |= {folder: records} if (records := stop_federation(folder)) else {}
    if not stopped:
        where = f"in {home}" if home else "of this folder"
        raise ConfigError(f"no federation {where} is running; give the --home of `fedloom serve`, or see fedloom runs")
    if json:
        print_object([{"home": str(folder), **asdict(one)} for folder, records in stopped.items() for one in records])
        return
    for folder, records in stopped.items():
        names = ", ".join(f"{printable(one.name, 80)} (process {one.pid})" for one in records)
        say(f"stopped the federation in {folder}: {names}")
        for run in dict.fromkeys(one.run for one in records if one.run):
            if hint := _continuation(run):
                note(hint)


def _continuation(run: str) -> str:
    """Return how to continue a run; empty if it is over or never began."""
    from common.errors import ConfigError
    from deploy.federation.runs import origin_of, runs_folder
    from server.record.folder import RunDirectory

    try:
        folder = RunDirectory(runs_folder(), run)
    except ConfigError:
        return ""
    origin = origin_of(folder.path)
    if origin is None or not (folder.path / "config.toml").exists() or folder.result():
        return ""
    return f"continue the run with fedloom {origin.command} --resume {run}"
