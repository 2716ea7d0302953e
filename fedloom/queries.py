"""Recommendations, forecasts and checks of data from Python."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.files import expand_home
from common.options import Scalar
from common.text import one_name
from deploy.cli.options import STATE, DataRequest, TrainingData
from deploy.commands.recommend import find_answering
from deploy.data.check import DataReport, check_data
from deploy.federation.runs import find_run
from deploy.pages.answers import rounded
from deploy.serving.export import export_run
from deploy.serving.models import open_run
from deploy.tasks.registry import DEPLOY_TASKS
from fedloom.arguments import Data, Words, pick, refuse_further, stored
from fedloom.console import silence
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
        folder, task = find_answering(run, set(words))
        if task.answer is None:
            raise ConfigError(f"run '{run}' is of task {task.name}, which answers no queries")
        options = {option.name: one_name(words.get(option.name, "")) for option in task.query}
        answers = task.answer(open_run(folder, task.name, source, expand_home(STATE)), options, top)
    what = answers.what or next(iter(answers.columns.values()))[0]
    return [
        Recommendation(str(row[what]), float(row.get(answers.score, 0.0)), str(row.get("why", "")), row)
        for row in rounded(answers)
    ]


def forecast(run: str, data: Data, site: str, horizon: int, options: Words) -> list[dict[str, Any]]:
    """Return the forecast of a sensor by a finished run, one row per step and variable; see `Run.forecast`."""
    from deploy.tasks.traffic.forecast import compute_forecast
    from deploy.tasks.traffic.task import SensorRequest

    with stored(data) as path, silence():
        source, rest = pick(DataRequest, {"data": path, **options})
        refuse_further(rest, "forecast", ["data", "site", "horizon"])
        view = compute_forecast(source, SensorRequest(site, run, state_dir=expand_home(STATE)), horizon)
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


def check(data: Data, *, task: str, clients: int = 0, **options: Any) -> DataReport:
    """Return what training would read from your data, as `fedloom check` shows.

    Args:
        data: Data file or folder, or a table of pandas, polars or Arrow.
        task: Name of the task.
        clients: Number of clients among whom the data are partitioned; 0 for none.
        options: Options of the tables, as `fedloom check` has them, such as `columns={"user": "Customer no."}`.

    Raises:
        ConfigError: An option is unknown.
        DataError: The data cannot be read.
    """
    with stored(data) as path:
        source, rest = pick(TrainingData, {"data": path, **options})
        refuse_further(rest, "check", [field.name for field in fields(TrainingData)])
        return check_data(task, path, clients, source.dialect)
