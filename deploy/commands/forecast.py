"""`properties` and `forecast`: what a sensor's past obeys, and what it will read next."""

import re
from pathlib import Path
from typing import Annotated

import typer

from common.config.overrides import overrides
from common.config.parse import parse
from common.errors import ConfigError, DataError
from common.tasks.traffic.task import TASK
from deploy.cli import options as o
from deploy.commands.launch import STATE
from deploy.commands.trained_traffic import ForecastQuery, pooled_for, read, ready, series_of

Site = Annotated[str, typer.Option(help="Which sensor of the data; default: the first.")]
Client = Annotated[
    str, typer.Option(help="The client that took part, by its name; default: who trained on these data.")
]
StateDir = Annotated[Path, typer.Option(help="Where clients keep their private state, as `join` was told.")]


def properties(
    data: o.Data = "demo",
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    site: Site = "",
    sets: o.Sets = None,
    run: Annotated[str, typer.Option(help="The finished run that a sensor with little past learns from.")] = "",
    client: Client = "",
    state_dir: StateDir = STATE,
    json: o.AsJson = False,
) -> None:
    """What a sensor's past obeys by the clock: in signal temporal logic and in words. Needs no run.

    Nothing leaves this machine. Formulas speak of the day's readings, the one at midnight being number 0. A sensor with less
    than two weeks of training takes what members alike in shape obey, where a finished FedSTL run tells of them.
    """
    from client.tasks.traffic.cold_start import adopted, is_new
    from client.tasks.traffic.prepare import prepare
    from deploy.tasks.traffic.property import as_json, as_lines

    config = parse({"method": "fedstl", "task": "traffic", **overrides(sets or [])})
    dialect = o.dialect_of(data, columns, decimal, dates)
    dataset, options = read(data, None, dialect), config.options_of(TASK)
    sensor = prepare(series_of(site, dataset, data), dataset.vocabulary, options, residual=True)
    if is_new(sensor, options):
        name, pooled = pooled_for(
            ForecastQuery(data, site, run, client, state_dir, dialect), dataset.vocabulary, options.property
        )
        sensor = adopted(sensor, pooled, options)
        if sensor.pooled:
            o.console.print(f"{data}: with what members of run {name} obey", soft_wrap=True, markup=False)
    if json:
        o.print_object(as_json(sensor, dataset.vocabulary, options))
        return
    for line in as_lines(sensor, dataset.vocabulary, options):
        _say(line)


def forecast(
    data: o.Data = "demo",
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    site: Site = "",
    horizon: Annotated[int, typer.Option(min=1, help="Steps after the last reading; up to the model's own.")] = 24,
    run: Annotated[
        str, typer.Option(help="The finished run; default: the newest these data took part in, else the newest.")
    ] = "",
    client: Client = "",
    plot: Annotated[
        Path | None, typer.Option(help="Where the figure goes (.svg, .png or .pdf); default: forecast-SITE.svg here.")
    ] = None,
    state_dir: StateDir = STATE,
    json: o.AsJson = False,
) -> None:
    """What a sensor will read after its last reading: the model's forecast, and the closest that its past's rules allow.

    Nothing leaves this machine. Where a client here took part with these data, be it before they grew, its own private layers
    are used; what the sensor usually reads and what it obeys are learnt from all readings there are now.
    """
    from client.tasks.traffic.cold_start import adopted
    from client.tasks.traffic.inference import forecast as forecast_of
    from deploy.tasks.traffic.forecast import ForecastView, draw

    if plot and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ConfigError(f"--plot {plot}: end the name in .svg, .png or .pdf")
    dialect = o.dialect_of(data, columns, decimal, dates)
    found = ready(ForecastQuery(data, site, run, client, state_dir, dialect))
    sensor = next(one for one in found.learner.sensors if not site or one.series.name == site)
    sensor = adopted(sensor, found.pooled, found.learner.options)
    try:
        coming = forecast_of(found.learner, sensor, found.model, horizon, found.pooled)
    except DataError as error:
        raise DataError(f"'{sensor.series.name}': {error}", data) from None
    outlook = ForecastView(found.run, found.measures.variables, found.config.options_of(TASK), coming)
    path = plot or (None if json else Path("forecast-" + re.sub(r"[^\w.-]+", "_", sensor.series.name) + ".svg"))
    try:
        if path:
            draw(outlook, path)
    except OSError as error:
        raise ConfigError(f"--plot {path}: {error.strerror}; name a file that may be written") from None
    if json:
        o.print_object({**outlook.as_json(), "plot": str(path or "")})
        return
    for line in outlook.as_lines():
        _say(line)
    _say(f"figure: {path}")


def _say(line: str) -> None:
    o.out.print(line, soft_wrap=True, markup=False, highlight=False)
