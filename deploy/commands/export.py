"""`fedloom export`: the rounds of runs for TensorBoard and Prometheus."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o


def export(
    runs: o.Runs = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write TensorBoard event files there, one folder a run.")
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the newest round as Prometheus text, for a node exporter's *.prom files."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option(help="Continue until the run is over.")] = False,
    json: o.AsJson = False,
) -> None:
    """Export the rounds of runs to TensorBoard or Prometheus.

    Needs the extra `exporters`. The file metrics.jsonl of a run holds the same, one event a line.
    """
    from common.text import count
    from deploy.cli.output import print_object, say
    from deploy.federation.runs import find_run, newest
    from deploy.pages import exporters

    if not (tensorboard or prometheus):
        raise ConfigError("no target is set; give --tensorboard FOLDER, --prometheus FILE, or both")
    if follow and not runs:
        raise ConfigError("--follow needs the name of a run; the newest finished run is over already")
    folders = [find_run(name) for name in runs] if runs else [newest()]
    rounds = exporters.export(folders, tensorboard, prometheus, follow=follow)
    places = [str(path) for path in (tensorboard, prometheus) if path]
    if json:
        print_object({"rounds": rounds, "written": places})
    else:
        say(f"{count(rounds, 'round')} written to {' and '.join(places)}")
