"""`recommend` and `report`: what to do with a finished run."""

import json as jsonlib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from common.config import parse
from common.errors import ConfigError, DataError
from deploy.cli import options as o
from server.artifacts import RunDirectory


def recommend(
    user: Annotated[str, typer.Option(help="Whose home, as named in the data; default: the first home.")] = "",
    data: o.Data = "demo",
    top: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    run: Annotated[str, typer.Option(help="The finished run; default: the newest completed one.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """Rules to add to a home, likeliest first, from a finished run's model. Nothing leaves this machine."""
    from client.data.rules.reader import read_homes
    from client.recommend import recommend as rank

    folder = RunDirectory(o.runs_folder(), run or newest())
    config = parse(o.flat(folder.config()))
    catalogue = folder.catalogue()
    model, _ = folder.load_model()
    homes = {home.user: home for home in read_homes(data, catalogue).homes}
    if user and user not in homes:
        closest = get_close_matches(user, homes, n=1)
        hint = f"; did you mean '{closest[0]}'?" if closest else ""
        raise DataError(f"no user '{user}' among its {len(homes)} homes{hint}", data)
    home = homes[user or next(iter(homes))]
    found = rank(config, catalogue, model, home, top)
    if json:
        print(jsonlib.dumps([vars(r) for r in found], ensure_ascii=False))
        return
    table = Table("", "rule to add", "probability", title=f"{home.user}, by run {folder.path.name}")
    for place, r in enumerate(found, start=1):
        table.add_row(str(place), r.rule, f"{r.probability:.2f}")
    o.out.print(table)


def report(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs, by name or folder; default: the newest.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the page goes; default: into the first run's folder.")] = None,
) -> None:
    """Write report.html: curves, per-client spread, timings, configuration; several runs are overlaid."""
    from deploy.report import render

    folders = [folder_of(name) for name in runs or [newest()]]
    o.out.print(str(render(folders, out or folders[0] / "report.html")), soft_wrap=True)


def folder_of(name: str) -> Path:
    """A run's folder, by name or path.

    Raises:
        ConfigError: There is no such run.
    """
    given = Path(name)
    folder = (
        RunDirectory(given.parent, given.name)
        if (given / "config.toml").exists()
        else RunDirectory(o.runs_folder(), name)
    )
    folder.config()
    return folder.path


def newest() -> str:
    """The newest completed run.

    Raises:
        ConfigError: There is none.
    """
    done = sorted(o.runs_folder().glob("*/result.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in done:
        if jsonlib.loads(path.read_text())["status"] == "completed":
            return path.parent.name
    raise ConfigError(f"no completed run in {o.runs_folder()}; train one first, for example with `fedloom up`")
