"""`fedloom forecast`, `fedloom properties` and `fedloom data`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.signature import spread
from deploy.tasks.traffic.task import SensorRequest

SUFFIXES = (".svg", ".png", ".pdf")


@spread
def properties(source: o.DataRequest, sensor: SensorRequest, sets: o.Sets = None, json: o.AsJson = False) -> None:
    """Show the properties that a sensor's past satisfies.

    Prints formulas of signal temporal logic, and sentences, by time of the day. Formulas refer to the readings of a day; the
    one at midnight is number 0. Nothing leaves this machine, and no run is needed.

    A sensor with less than nine days of training data takes the pooled property of similar clients from a finished FedSTL run.
    """
    from deploy.cli.output import print_object, say
    from deploy.tasks.traffic.forecast import infer_property
    from deploy.tasks.traffic.property import as_json, as_lines

    found = infer_property(source, sensor, sets or [])
    if json:
        print_object(as_json(*found))
        return
    for line in as_lines(*found):
        say(line)


@spread
def forecast(
    source: o.DataRequest,
    sensor: SensorRequest,
    horizon: Annotated[
        int, typer.Option(min=1, help="Forecast so many steps after the last reading, up to the model's own horizon.")
    ] = 24,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the figure here (.svg, .png or .pdf); default: forecast-SITE.svg.")
    ] = None,
    checkpoint: o.Checkpoint = "",
    json: o.AsJson = False,
) -> None:
    """Forecast a sensor's next readings.

    Shows the model's forecast with an 80 % interval by the sensor's own past errors. Also shows the closest forecast that
    satisfies the property of the sensor's past. If a client on this machine trained on these data, or on earlier ones at
    this place, its private layers are used. Profile and property are fitted to all readings. Nothing leaves this machine.
    """
    from deploy.cli.output import print_object, say
    from deploy.tasks.traffic.forecast import compute_forecast, draw

    if plot and plot.suffix not in SUFFIXES:
        raise ConfigError(f"--plot {plot}: the suffix is none of {', '.join(SUFFIXES)}; use one of them")
    view = compute_forecast(source, sensor, horizon, checkpoint)
    path = plot or (None if json else Path("forecast-" + re.sub(r"[^\w.-]+", "_", view.site) + ".svg"))
    try:
        if path:
            draw(view, path)
    except OSError as error:
        raise ConfigError(f"--plot {path}: {error.strerror}; name a file that may be written") from None
    if json:
        print_object({**view.as_json(), "plot": str(path or "")})
        return
    for line in [*view.as_lines(), f"figure: {path}"]:
        say(line)


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
