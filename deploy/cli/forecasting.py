"""`properties` and `forecast`: what a sensor's past obeys, and what it will read next."""

import json as jsonlib
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from client.data.parts import read_all
from client.data.traffic.series import Dataset, Series
from common.arrays import Arrays
from common.config import RunConfig, overrides, parse
from common.errors import ConfigError, DataError
from common.tasks.traffic import Measures
from common.tasks.vocabularies import vocabulary_of
from deploy.cli import options as o
from deploy.cli.joining import STATE
from deploy.cli.training import LOCAL
from server.artifacts import RunDirectory

if TYPE_CHECKING:
    from client.tasks.traffic import TrafficLearner

Site = Annotated[str, typer.Option(help="Which sensor of the data; default: the first.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout; all else on stderr.")]

HEADS_ANEW = "its clients keep layers to themselves; this sensor's are made anew here, from one round on its own data"


def properties(data: o.Data = "demo", site: Site = "", sets: o.Sets = None, json: AsJson = False) -> None:
    """What a sensor's past obeys by the clock: in signal temporal logic and in words. Needs no run.

    Nothing leaves this machine. Formulas speak of the day's readings, the one at midnight being number 0.
    """
    from client.tasks.traffic_sensor import prepare
    from deploy.report.ranges import as_json, as_lines

    config = parse({"method": "fedstl", "task": "traffic", **overrides(sets or [])})
    dataset, options = _read(data, None), config.tasks.traffic
    sensor = prepare(_series(site, dataset, data), dataset.measures, options, residual=True)
    if json:
        _print_json(as_json(sensor, dataset.measures, options))
        return
    for line in as_lines(sensor, dataset.measures, options):
        _say(line)


def forecast(
    data: o.Data = "demo",
    site: Site = "",
    horizon: Annotated[int, typer.Option(min=1, help="Steps after the last reading; up to the model's own.")] = 24,
    run: Annotated[
        str, typer.Option(help="The finished run; default: the newest these data took part in, else the newest.")
    ] = "",
    plot: Annotated[
        Path | None, typer.Option(help="Where the figure goes (.svg, .png or .pdf); default: forecast-SITE.svg here.")
    ] = None,
    state_dir: Annotated[
        Path, typer.Option(help="Where clients keep their private state, as `join` was told.")
    ] = STATE,
    json: AsJson = False,
) -> None:
    """What a sensor will read after its last reading: the model's forecast, and the closest that its past's rules allow.

    Nothing leaves this machine. Where a client here took part with just these data, its own private layers are used.
    """
    from client.forecast import forecast as forecast_of
    from deploy.report.outlook import Outlook, draw

    if plot and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ConfigError(f"--plot {plot}: end the name in .svg, .png or .pdf")
    ready = _ready(data, site, run, state_dir)
    sensor = next(one for one in ready.learner.sensors if not site or one.series.name == site)
    try:
        coming = forecast_of(ready.config, ready.learner, sensor, ready.model, horizon)
    except DataError as error:
        raise DataError(f"'{sensor.series.name}': {error}", data) from None
    outlook = Outlook(ready.run, sensor, ready.measures.variables, ready.config.tasks.traffic, coming)
    path = plot or (None if json else Path("forecast-" + re.sub(r"[^\w.-]+", "_", sensor.series.name) + ".svg"))
    try:
        if path:
            draw(outlook, path)
    except OSError as error:
        raise ConfigError(f"--plot {path}: {error.strerror}; name a file that may be written") from None
    if json:
        _print_json({**outlook.as_json(), "plot": str(path or "")})
        return
    for line in outlook.as_lines():
        _say(line)
    _say(f"figure: {path}")


@dataclass(frozen=True)
class _Ready:
    run: str
    config: RunConfig
    measures: Measures
    learner: "TrafficLearner"
    model: Arrays


def _ready(data: str, site: str, run: str, state_dir: Path) -> _Ready:
    """The data made ready for a finished run, and the model that their client would use."""
    from client.forecast import own_model, personal
    from client.tasks.traffic import TrafficLearner
    from deploy.cli.kept import newest_kept

    roots = [state_dir, *(LOCAL / "up").glob("*/client-*/state")]
    if kept := newest_kept("traffic", data, run, roots):
        dataset = _read(data, cast(Measures, kept.names))
        _series(site, dataset, data)
        learner = TrafficLearner(kept.config, dataset.measures, dataset.series)
        o.console.print(f"{data}: by the model that their client kept of run {kept.run}", soft_wrap=True, markup=False)
        return _Ready(kept.run, kept.config, dataset.measures, learner, kept.model)
    folder = RunDirectory(o.runs_folder(), run or _newest_traffic())
    config = parse(o.flat(folder.config()))
    if config.task != "traffic":
        raise ConfigError(f"run '{folder.path.name}' is of task {config.task}; name one of task traffic with --run")
    dataset = _read(data, cast(Measures, vocabulary_of("traffic", folder.catalogue())))
    learner = TrafficLearner(config, dataset.measures, [_series(site, dataset, data)])
    trained, _ = folder.load_model()
    if personal(config, trained):
        o.console.print(f"run {folder.path.name}: {HEADS_ANEW}", soft_wrap=True, markup=False)
    return _Ready(folder.path.name, config, dataset.measures, learner, own_model(config, learner, trained))


def _newest_traffic() -> str:
    for path in sorted(o.runs_folder().glob("*/result.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        result = jsonlib.loads(path.read_text("utf-8"))
        if (result["task"], result["status"]) == ("traffic", "completed"):
            return path.parent.name
    raise ConfigError(
        f"no completed traffic run in {o.runs_folder()}; train one first, for example with `fedloom up --task traffic`"
    )


def _read(data: str, measures: Measures | None) -> Dataset:
    dataset = cast(Dataset, read_all("traffic", data, known=measures))
    for note in dataset.notes:
        o.console.print(f"{data}: {note}", soft_wrap=True, markup=False)
    return dataset


def _series(site: str, dataset: Dataset, data: str) -> Series:
    series = {one.name: one for one in dataset.series}
    if site and site not in series:
        closest = get_close_matches(site, series, n=1)
        hint = f"; did you mean '{closest[0]}'?" if closest else ""
        raise DataError(f"no sensor '{site}' among its {len(series)}{hint}", data)
    if not site and len(series) > 1:
        o.console.print(
            f"{data}: the first of {len(series)} sensors; --site takes another", soft_wrap=True, markup=False
        )
    return series[site or next(iter(series))]


def _say(line: str) -> None:
    o.out.print(line, soft_wrap=True, markup=False, highlight=False)


def _print_json(value: object) -> None:
    o.print_json(jsonlib.dumps(value, ensure_ascii=False).encode())
