"""`fedloom data`: data sets from simulators."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o

data = typer.Typer(help="Make data sets.", no_args_is_help=True, add_completion=False, suggest_commands=False)


@data.callback()
def group() -> None:
    """Make data sets."""


@data.command()
def sumo(
    out: Annotated[Path, typer.Option(help="Write the table (CSV) here.")] = Path("sumo.csv"),
    edges: Annotated[int, typer.Option(min=1, help="Record so many edges, the busiest.")] = 100,
    seconds: Annotated[int, typer.Option(min=1, help="Record so many seconds, after a warm-up.")] = 3600,
    seed: Annotated[int, typer.Option(min=0, help="Seed the simulation; one seed gives one table.")] = 0,
    json: o.AsJson = False,
) -> None:
    """Simulate traffic on a grid of streets with SUMO and record six variables of each edge.

    Vehicles are cars, trucks and motorcycles.

    Needs the extra `sumo` of fedloom. A catalogue for training on steps of one second is written beside the table:
    `fedloom simulate --task traffic --data sumo.csv --catalogue sumo.json --set tasks.traffic.history=40
    --set tasks.traffic.horizon=10 --set tasks.traffic.slice=latest --set tasks.traffic.property=difference`.
    """
    from client.tasks.traffic.data.sumo import record_sumo
    from deploy.cli.output import note, print_object

    record_sumo(out, edges=edges, seconds=seconds, seed=seed)
    catalogue = out.with_suffix(".json")
    note(f"{edges} edges, {seconds} seconds, six variables: {out}; catalogue: {catalogue}")
    if json:
        print_object({"table": str(out), "catalogue": str(catalogue)})
