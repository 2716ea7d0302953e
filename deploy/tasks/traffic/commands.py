"""`fedloom forecast` and `fedloom properties`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.signature import spread

SUFFIXES = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class SensorRequest:
    """A sensor, and the model that is applied to it."""

    site: Annotated[str, typer.Option(help="Use this sensor of the data; default: the first.")] = ""
    run: Annotated[
        str,
        typer.Option(
            help="Use this finished run, by name or folder; default: the newest that trained on the data, or else the newest."
        ),
    ] = ""
    client: Annotated[
        str, typer.Option(help="Use the model that this client stored; default: who trained on the data.")
    ] = ""
    state_dir: o.StateDir = o.STATE


@spread
def properties(source: o.DataRequest, sensor: SensorRequest, sets: o.Sets = None, json: o.AsJson = False) -> None:
    """Show the properties that a sensor's past satisfies.

    Prints formulas of signal temporal logic, and sentences, by time of the day. Formulas refer to the readings of a day; the
    one at midnight is number 0. Nothing leaves this machine, and no run is needed.

    A sensor with less than two weeks of training data takes the pooled property of similar clients from a finished FedSTL run.
    """
    from deploy.cli.output import print_object, say
    from deploy.tasks.traffic.inference import infer_property
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
    from deploy.tasks.traffic.forecast import draw
    from deploy.tasks.traffic.inference import compute_forecast

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
