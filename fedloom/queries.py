"""Recommendations, forecasts and checks of data from Python."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.files import expand_home
from common.options import Scalar
from common.text import one_name
from deploy.cli.options import STATE, DataRequest, TrainingData
from deploy.cli.output import silence
from deploy.commands.recommend import find_answering, queries_of_all
from deploy.data.check import DataReport, check_data, require_trainable
from deploy.federation.runs import find_run
from deploy.files import write_file
from deploy.pages.answers import rounded
from deploy.serving.export import export_run
from deploy.serving.models import open_run
from deploy.tasks.registry import DEPLOY_TASKS, ask
from fedloom.arguments import Data, Words, pick, refuse_further, stored
from server.record.result import Result

__all__ = ["DataReport", "Recommendation", "check", "export_onnx", "forecast", "recommend"]


@dataclass(frozen=True)
class Recommendation:
    """One recommendation.

    Args:
        what: Text of the answer.
        score: Number by which answers are ranked; no probability.
        why: Reason in one clause; empty in tasks without reasons.
        fields: All fields of the answer, as `fedloom recommend --json` prints them.
    """

    what: str
    score: float
    why: str
    fields: Mapping[str, Scalar]


def recommend(run: str, data: Data, top: int, query: Mapping[str, Any]) -> list[Recommendation]:
    """Return recommendations of a finished run, best first; see `Run.recommend`."""
    with stored(data) as path, silence():
        source, words = pick(DataRequest, {"data": path, **query})
        everybody, checkpoint = words.pop("all", False), str(words.pop("checkpoint", ""))
        state_dir = expand_home(Path(words.pop("state_dir", STATE)))
        folder, task = find_answering(run, {name for name, value in words.items() if value})
        options = {option.name: one_name(str(words.get(option.name) or "")) for option in task.query}
        trained = open_run(folder, task.name, source, state_dir, checkpoint)
        batch = ask(task, trained, queries_of_all(task, trained, options) if everybody else [options], top)
    return [
        Recommendation(
            str(row[one.what or next(iter(one.columns.values()))[0]]),
            float(row.get(one.score, 0.0)),
            str(row.get("why", "")),
            {"user": one.user, **row} if everybody else row,
        )
        for one in batch
        for row in rounded(one)
    ]


def forecast(run: str, data: Data, site: str, horizon: int, options: Words) -> list[dict[str, Any]]:
    """Return the forecast of a sensor by a finished run, one row per step and variable; see `Run.forecast`."""
    from deploy.tasks.traffic.forecast import compute_forecast
    from deploy.tasks.traffic.task import SensorRequest

    with stored(data) as path, silence():
        source, rest = pick(DataRequest, {"data": path, **options})
        sensor, rest = pick(SensorRequest, {"state_dir": STATE, **rest, "site": site, "run": run})
        sensor, checkpoint = replace(sensor, state_dir=expand_home(Path(sensor.state_dir))), rest.pop("checkpoint", "")
        known = [field.name for kind in (DataRequest, SensorRequest) for field in fields(kind)]
        refuse_further(rest, "forecast", [*known, "horizon", "checkpoint"])
        view = compute_forecast(source, sensor, horizon, str(checkpoint))
    rows: list[dict[str, Any]] = view.as_json()["rows"]
    return rows


def export_onnx(run: Path, result: Result, path: Path, data: str, unit: str) -> Path:
    """Write the model of a finished run as an ONNX file with a model card; see `Run.export_onnx`."""
    if result.task not in DEPLOY_TASKS:
        raise ConfigError(f"run '{run.name}' is of a task that declares no export; export another run")
    task = DEPLOY_TASKS[result.task]
    with silence():
        trained = open_run(find_run(str(run)), task.name, DataRequest(data or "demo"), expand_home(STATE))
        export_run(trained, task, result, path, unit, data=bool(data))
    return path


def check(data: Data, *, task: str, clients: int = 0, catalogue: str | Path = "", **options: Any) -> DataReport:
    """Return what training would read from your data, as `fedloom check` shows.

    Args:
        data: Data file or folder, or a table of pandas, polars or Arrow.
        task: Name of the task.
        clients: Number of clients among whom the data are partitioned; 0 for none.
        catalogue: New file (JSON) for the vocabulary of the data; empty for none.
        options: Options of the tables, as `fedloom check` has them, such as `columns={"user": "Customer no."}`.

    Raises:
        ConfigError: An option is unknown, or the file exists.
        DataError: The data cannot be read or, with `catalogue`, nobody has anything to train on.
    """
    with stored(data) as path:
        source, rest = pick(TrainingData, {"data": path, **options})
        refuse_further(rest, "check", [field.name for field in fields(TrainingData)])
        report = check_data(task, path, clients, source.dialect)
        if catalogue:
            require_trainable(report)
            write_file(Path(catalogue), report.vocabulary.encode())
        return report
