"""`fedloom report`: report.html of finished and unfinished runs."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o


def report(
    runs: o.Runs = None,
    out: Annotated[Path | None, typer.Option(help="Write the page here; default: into the first run's folder.")] = None,
    json: o.AsJson = False,
) -> None:
    """Write report.html for one run, or to compare several.

    The page shows curves, the spread over clients, timings and the configuration.
    """
    from deploy.cli.output import print_object, say
    from deploy.federation.runs import find_run, newest
    from deploy.pages.report import render

    folders = [find_run(name).path for name in runs] if runs else [newest().path]
    page = render(folders, out or folders[0] / "report.html")
    if json:
        print_object({"report": str(page)})
    else:
        say(str(page))
