"""Adapters to TensorBoard, Prometheus, MLflow and Weights & Biases, imported on first use.

A tool gets numbers and options of the run, `config.toml` and `result.json`. Its own telemetry, and what it collects of the
machine, is switched off.
"""

import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from deploy.federation.runs import stored_runs
from deploy.pages.tracker import TrackedRun, TrackerKind, numbers, require
from server.record.events import RoundEvent, Start

MOST_PARAMETERS = 100
"""Options in one call of MLflow."""

MOST_RUNS = 20
"""Runs in the text of a folder."""


class TensorBoard:
    """Event files in a folder of the run below `target`, in place of those of an earlier export."""

    def __init__(self, run: TrackedRun, target: str) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(Path(target) / run.run), purge_step=0)
        self._writer.add_text("options", json.dumps(dict(run.options), indent=4))

    def round(self, number: int, time: float, values: Mapping[str, float]) -> None:
        """Write the numbers of a round as scalars."""
        for path, value in values.items():
            self._writer.add_scalar(path, value, number, time)
        self._writer.flush()

    def finish(self, status: str, values: Mapping[str, float], files: Sequence[Path]) -> None:
        """Write the final numbers, and close the files."""
        self._writer.add_text("result", json.dumps({"status": status, **values}, indent=4))
        self._writer.close()


class Gauges:
    """Newest round of each run, as gauges in a text file or at an address that Prometheus asks.

    Args:
        target: File; or PORT of this machine, or HOST:PORT; empty for neither.

    Raises:
        ConfigError: The port is in use.
    """

    def __init__(self, target: str = "") -> None:
        from prometheus_client import CollectorRegistry, Gauge, start_http_server

        self.registry = CollectorRegistry()
        labels = ("run", "method", "task")
        self.round = Gauge("fedloom_round", "Number of completed rounds.", labels, registry=self.registry)
        self.number = Gauge(
            "fedloom_round_number", "Number of the newest round.", (*labels, "name"), registry=self.registry
        )
        self.file: Path | None = None
        if address := re.fullmatch(r"(?:(\S+):)?(\d{1,5})", target):
            host, port = address[1] or "127.0.0.1", int(address[2])
            try:
                start_http_server(port, host, self.registry)
            except OSError as error:
                raise ConfigError(f"--track prometheus={target}: {error.strerror}; choose another port") from None
        elif target:
            self.file = Path(target)

    def text(self) -> bytes:
        """Return the gauges in the text form of Prometheus."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def write(self) -> None:
        """Write the file, if there is one, as a whole."""
        from prometheus_client import write_to_textfile

        if self.file:
            write_to_textfile(str(self.file), self.registry)


gauges_of = functools.cache(Gauges)
"""Gauges of a target, which the runs of one process share."""


class Prometheus:
    """Newest round of a run, in the gauges of a target or in given ones."""

    def __init__(self, run: TrackedRun, target: str = "", gauges: Gauges | None = None) -> None:
        self._gauges, self._labels = gauges or gauges_of(target), (run.run, run.method, run.task)
        self._names: set[str] = set()

    def round(self, number: int, time: float, values: Mapping[str, float]) -> None:
        """Set the gauges of a round; those of an earlier one that it lacks are removed."""
        self._gauges.round.labels(*self._labels).set(number)
        for name in self._names - values.keys():
            self._gauges.number.remove(*self._labels, name)
        for name, value in values.items():
            self._gauges.number.labels(*self._labels, name).set(value)
        self._names = set(values)
        self._gauges.write()

    def finish(self, status: str, values: Mapping[str, float], files: Sequence[Path]) -> None:
        """Leave the gauges as they are."""


def newest_rounds(root: Path) -> bytes:
    """Return the newest round of the newest `MOST_RUNS` runs of a folder, in the text form of Prometheus.

    Raises:
        ConfigError: prometheus-client is not installed.
    """
    require(PROMETHEUS)
    gauges = Gauges()
    for folder in stored_runs(root)[:MOST_RUNS]:
        start, last = None, None
        for event in folder.events():
            start = event if isinstance(event, Start) else start
            last = event if isinstance(event, RoundEvent) else last
        if start and last:
            about = TrackedRun(start.run, start.method, start.task, start.time, {})
            Prometheus(about, gauges=gauges).round(last.round, last.time, numbers(last))
    return gauges.text()


class Mlflow:
    """Run of the same name in the experiment `fedloom` of a tracking server.

    An earlier record of the run is continued with the rounds that it lacks.

    Args:
        run: The run.
        target: Tracking URI; empty for MLflow's own default.
    """

    def __init__(self, run: TrackedRun, target: str) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # seven last minutes
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=target or None)
        found = self._client.get_experiment_by_name("fedloom")
        experiment = found.experiment_id if found else self._client.create_experiment("fedloom")
        same = self._client.search_runs([experiment], filter_string=f"tags.`fedloom.run` = '{run.run}'", max_results=1)
        tags = {"fedloom.run": run.run, "fedloom.method": run.method, "fedloom.task": run.task}
        made = same or [
            self._client.create_run(experiment, start_time=round(run.time * 1000), tags=tags, run_name=run.run)
        ]
        self._run = made[0].info.run_id
        history = self._client.get_metric_history(self._run, "seconds") if same else []
        self._logged = {(metric.step, metric.timestamp) for metric in history}
        if not same:
            parameters = [Param(key, str(value)) for key, value in run.options.items()]
            for at in range(0, len(parameters), MOST_PARAMETERS):
                self._client.log_batch(self._run, params=parameters[at : at + MOST_PARAMETERS])

    def round(self, number: int, time: float, values: Mapping[str, float]) -> None:
        """Log the numbers of a round as metrics of that step."""
        from mlflow.entities import Metric

        at = round(time * 1000)
        if (number, at) not in self._logged:
            metrics = [Metric(name, value, at, number) for name, value in values.items()]
            self._client.log_batch(self._run, metrics=metrics)

    def finish(self, status: str, values: Mapping[str, float], files: Sequence[Path]) -> None:
        """Tag the run with its final numbers, store its files and end it."""
        for name, value in values.items():
            self._client.set_tag(self._run, f"final.{name}", f"{value:.6g}")
        for path in files:
            self._client.log_artifact(self._run, str(path))
        ends = {"completed": "FINISHED", "failed": "FAILED"}
        self._client.set_terminated(self._run, ends.get(status, "KILLED"))


class WeightsAndBiases:
    """Run of the same id in a project; WANDB_MODE=offline writes it to this machine, for `wandb sync`.

    Args:
        run: The run.
        target: PROJECT or ENTITY/PROJECT; empty for the project `fedloom`.
    """

    def __init__(self, run: TrackedRun, target: str) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        entity, _, project = target.rpartition("/")
        self._run: Any = wandb.init(
            entity=entity or None,
            project=project or "fedloom",
            id=run.run,
            name=run.run,
            group=run.task,
            config=dict(run.options),
            resume="allow",
            save_code=False,
            settings=wandb.Settings(
                console="off", disable_git=True, x_disable_meta=True, x_disable_stats=True, silent=True
            ),
        )

    def round(self, number: int, time: float, values: Mapping[str, float]) -> None:
        """Log the numbers of a round as those of that step."""
        self._run.log(dict(values), step=number)

    def finish(self, status: str, values: Mapping[str, float], files: Sequence[Path]) -> None:
        """Store the final numbers and the files, and end the run."""
        self._run.summary.update({**values, "status": status})
        self._run.log_artifact(self._with(files))
        self._run.finish(exit_code=int(status != "completed"))

    def _with(self, files: Sequence[Path]) -> Any:
        from wandb import Artifact

        artefact = Artifact(re.sub(r"[^\w.-]", "-", self._run.id), "run")
        for path in files:
            artefact.add_file(str(path))
        return artefact


TENSORBOARD = TrackerKind("tensorboard", "a folder", "tensorboardX", "tensorboardX", TensorBoard)
PROMETHEUS = TrackerKind("prometheus", "a file or [HOST:]PORT", "prometheus_client", "prometheus-client", Prometheus)
MLFLOW = TrackerKind("mlflow", "a tracking URI", "mlflow", "mlflow-skinny", Mlflow, may_omit=True)
WANDB = TrackerKind("wandb", "[ENTITY/]PROJECT", "wandb", "wandb", WeightsAndBiases, may_omit=True)
