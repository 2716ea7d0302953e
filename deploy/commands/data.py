"""`fedloom data`: data sets that are made, not read."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o

data = typer.Typer(help="Make data sets.", no_args_is_help=True)


@data.command()
def sumo(
    out: Annotated[Path, typer.Option(help="The table to write (CSV).")] = Path("sumo.csv"),
    edges: Annotated[int, typer.Option(min=1, help="Edges to record: the busiest.")] = 100,
    seconds: Annotated[int, typer.Option(min=1, help="Seconds to record, after a warm-up.")] = 3600,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same table.")] = 0,
    json: o.AsJson = False,
) -> None:
    """Simulate cars, trucks and motorcycles with SUMO on a grid of streets; record six measures of each edge every second.

    Needs the extra `fedloom[sumo]`. Beside the table goes the catalogue under which it is trained on second by second:
    `fedloom simulate --task traffic --data sumo.csv --catalogue sumo.json --set tasks.traffic.history=40
    --set tasks.traffic.horizon=10 --set tasks.traffic.slice=latest --set tasks.traffic.property=difference`.
    """
    from client.tasks.traffic.data.sumo import record_sumo

    record_sumo(out, edges=edges, seconds=seconds, seed=seed)
    o.console.print(f"{edges} edges, {seconds} seconds, six measures: {out}; catalogue: {out.with_suffix('.json')}")
    if json:
        o.print_object({"table": str(out), "catalogue": str(out.with_suffix(".json"))})
