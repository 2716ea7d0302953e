"""Finished runs as Python objects."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.config.keys import respell
from common.errors import ConfigError
from common.text import count
from deploy.federation.runs import find_run
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.result import Best, Privacy, Result, Verdict

if TYPE_CHECKING:
    from fedloom.arguments import Data
    from fedloom.queries import Recommendation

Row = dict[str, Any]
"""One row of a table; `pandas.DataFrame(rows)` makes a table of several."""


class Run:
    """Finished run.

    Args:
        folder: Its folder.

    Raises:
        ConfigError: The run has no result; the text says if it has ended or still trains.
    """

    def __init__(self, folder: RunDirectory) -> None:
        self._folder = folder
        result = folder.result()
        if result is None:
            run = folder.path.name
            way = (
                f"it has ended; continue it with resume='{run}'"
                if folder.is_idle()
                else f"process {folder.holder} works on it"
            )
            raise ConfigError(f"run '{run}' has no result; {way}")
        self.result: Result = result
        """Content of result.json."""

    def __repr__(self) -> str:
        from deploy.pages.view import headlines

        keys = [m.key for m in headlines(self.metrics.keys() - {"loss"}) if not m.baseline] or list(self.metrics)
        figures = ", ".join(f"{key}={self.metrics[key]:.4g}" for key in keys[:4])
        return f"<Run {self.id}: {self.result.status}, {count(self.result.rounds_done, 'round')}, {figures}>"

    @property
    def id(self) -> str:
        """Name of the run's folder."""
        return self._folder.path.name

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self._folder.path

    @property
    def config(self) -> dict[str, Any]:
        """Options of the run, by their keys."""
        return respell(self._folder.config())

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of the final model on test data."""
        return dict(self.result.metrics)

    @property
    def best(self) -> Best | None:
        """Best evaluated round; None if no round was evaluated."""
        return self.result.best

    @property
    def privacy(self) -> Privacy:
        """Privacy statement."""
        return self.result.privacy

    @property
    def verdict(self) -> Verdict | None:
        """Comparison with the baseline and with clients alone; None in runs that did not make one."""
        return self.result.verdict

    @property
    def rounds(self) -> list[Row]:
        """Rows of rounds: round, loss, seconds, answered, asked, bytes and metrics."""
        return [round_row(event) for event in self._folder.events() if isinstance(event, RoundEvent)]

    @property
    def clients(self) -> list[Row]:
        """Rows of clients: client, examples and metrics of the final model on the client's own held-out data."""
        return [{"client": name, "examples": one.examples, **one.metrics} for name, one in self.result.clients.items()]

    def recommend(self, *, data: "Data" = "demo", top: int = 10, **query: Any) -> list["Recommendation"]:
        """Return recommendations, best first, as `fedloom recommend` prints them.

        Args:
            data: Data file or folder, or a table of pandas, polars or Arrow.
            top: Largest number of answers.
            query: Options of the task, such as `user`, `session`, `market`, `item`, `client` and `policy`; of tables, such as
                `columns`; `checkpoint`, `state_dir`, and `all=True` for everybody; see `fedloom recommend --help`.

        Raises:
            ConfigError: The task does not understand an option.
            DataError: The data cannot be read, or lack the name.
        """
        from fedloom.queries import recommend

        return recommend(str(self.path), data, top, query)

    def forecast(self, *, data: "Data" = "demo", site: str = "", horizon: int = 24, **options: Any) -> list[Row]:
        """Return the forecast of a sensor: one row per step and variable, as `fedloom forecast --json` prints them.

        Args:
            data: Data file or folder, or a table of pandas, polars or Arrow.
            site: Name of the sensor; default: the first.
            horizon: Number of steps after the last reading.
            options: Options of the tables, such as `columns`; `checkpoint`, `client` and `state_dir`.

        Raises:
            ConfigError: The run forecasts nothing.
            DataError: The data cannot be read, or lack the sensor.
        """
        from fedloom.queries import forecast

        return forecast(str(self.path), data, site, horizon, options)

    def export_onnx(self, path: str | Path, *, data: str | Path = "", unit: str = "") -> Path:
        """Write the model as an ONNX file with a model card beside it, as `fedloom export-model` does; return its path.

        Args:
            path: The new file.
            data: Data file or folder of whose unit own data and parameters enter the file; then it is personal.
            unit: Name of that unit; default: the first.

        Raises:
            ConfigError: The model cannot be exported, the file exists, or the extra `serving` is not installed.
            DataError: The data cannot be read, or lack the unit.
        """
        from fedloom.queries import export_onnx

        return export_onnx(self.path, self.result, Path(path), str(data), unit)


def load_run(run: str | Path) -> Run:
    """Return a finished run by its name, or by its folder anywhere.

    Raises:
        ConfigError: The run does not exist or has no result.
    """
    return Run(find_run(str(run)))


def compare(runs: Sequence[Run]) -> list[Row]:
    """Return one row per run: run, task, method, seed, rounds, ε and metrics.

    Rows of further runs have `<metric>_difference` too, the mean of run minus first run over the clients that have the metric
    in both, and its standard error `<metric>_se`. If the runs differ in data or split, there are no differences.
    """
    from deploy.pages.terminal import comparison_as_json

    found = comparison_as_json([run.path for run in runs])["differences"] if runs else {}
    return [
        {
            "run": run.id,
            "task": run.result.task,
            "method": run.result.method,
            "seed": run.result.seed,
            "rounds": run.result.rounds_done,
            "epsilon": run.privacy.epsilon,
            **run.metrics,
            **{f"{key}_difference": one["mean"] for key, one in found.get(run.id, {}).items()},
            **{f"{key}_se": one["se"] for key, one in found.get(run.id, {}).items()},
        }
        for run in runs
    ]


def round_row(event: RoundEvent) -> Row:
    """Return a round as a flat row."""
    keys = ("round", "loss", "seconds", "answered", "asked", "bytes_down", "bytes_up", "split")
    return {key: getattr(event, key) for key in keys} | dict(event.metrics)
