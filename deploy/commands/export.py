"""`export`: a run's rounds for TensorBoard and Prometheus."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from common.text import count
from deploy.cli import options as o
from deploy.commands.runs import newest, run_of


def export(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs, by name or folder; default: the newest.")] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write TensorBoard's event files there, a folder a run.")
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the newest round as Prometheus text, for a node exporter's *.prom files."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option(help="Go on until the run is over.")] = False,
    json: o.AsJson = False,
) -> None:
    """Hand the rounds of a run to TensorBoard or Prometheus; needs the extra `exporters`.

    All of it is in metrics.jsonl as well, an event a line.
    """
    from deploy.report import exporters

    if not (tensorboard or prometheus):
        raise ConfigError("say where to: --tensorboard FOLDER, --prometheus FILE, or both")
    if follow and not runs:
        raise ConfigError("--follow needs the name of a run: the newest that is known is over already")
    folders = [run_of(name) for name in runs] if runs else [newest()]
    told = exporters.export(folders, tensorboard, prometheus, follow=follow)
    places = [str(path) for path in (tensorboard, prometheus) if path]
    if json:
        o.print_object({"rounds": told, "written": places})
        return
    o.out.print(f"{count(told, 'round')} written to {' and '.join(places)}", soft_wrap=True, markup=False)
