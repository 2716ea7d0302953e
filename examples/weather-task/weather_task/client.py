"""Weather task at the client: readings of stations, the squared error of the next one."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.func import functional_call

from client import api
from common.api import Arrays, Floats, Metrics, TaskRun, TrainRequest
from weather_task.spec import TASK as SPEC
from weather_task.spec import Fields, WeatherOptions

SCHEMA = api.TableSchema(
    columns=(api.Column("station", "text"), api.Column("time", "time")), rest="numbers", unit="station"
)
DEMO_STATIONS, DEMO_HOURS, START = 12, 240, 946_684_800


@dataclass(frozen=True, eq=False)
class Station:
    """One station: its private name and its readings in the order of time, T × F."""

    name: str
    values: NDArray[np.float32]


Stations = api.Dataset[Fields, Station]


def read(source: api.Source, vocabulary: Fields | None, seed: int) -> Stations:
    """Read a table with the columns `station`, `time` and one per field, or generate stations."""
    if demo := api.demo_range(source.text, DEMO_STATIONS):
        return Stations(tuple(_generated(k, seed) for k in range(*demo)), SPEC.demo())
    table = api.read_table(source.path, SCHEMA, source.dialect)
    fields = vocabulary.fields if vocabulary else table.variables
    codes, names = table.codes("station")
    order = np.argsort(table.numbers("time"), kind="stable")
    values = np.stack([table.numbers(name) for name in fields], axis=1).astype(np.float32)[order]
    stations = [Station(name, values[codes[order] == k]) for k, name in enumerate(names)]
    return Stations(tuple(sorted(stations, key=lambda one: one.name)), vocabulary or Fields(fields=tuple(fields)))


def write(path: Path, dataset: Stations) -> None:
    """Write the stations as one table, readable by the owner only."""
    hours = ((one.name, START + 3600 * k, *row) for one in dataset.units for k, row in enumerate(one.values.tolist()))
    api.write_private_csv(path, ["station", "time", *dataset.vocabulary.fields], hours)


class WeatherLearner:
    """A client's stations in one run: windows of `lags` readings, and the reading after each."""

    task, rows, shared = SPEC.name, 0, ()

    def __init__(self, run: TaskRun[WeatherOptions, Fields], dataset: Stations) -> None:
        self.module = api.shell(SPEC, run)
        kept, share = 1 - run.options.test_share, 1 - run.options.validation_share
        scaled = [_scaled(one.values, kept * share) for one in dataset.units]
        each = [torch.from_numpy(values).unfold(0, run.options.lags + 1, 1) for values in scaled]  # N × F × L
        splits = zip(*(w.tensor_split([round(kept * share * len(w)), round(kept * len(w))]) for w in each), strict=True)
        self._stations = dict(zip(("train", "validation", "test"), splits, strict=True))
        self._windows = {split: torch.cat(stations) for split, stations in self._stations.items()}
        self.examples = self.size = len(self._windows["train"])

    def batch(self, request: TrainRequest) -> api.Tensors:
        """Return the training windows, N × F × (lags + 1), and their weights, N."""
        return {"windows": self._windows["train"], "weights": torch.ones(self.examples)}

    def step_inputs(self, steps: int, generator: torch.Generator) -> api.Tensors:
        """Return nothing: steps are deterministic."""
        return {}

    def loss(self, params: api.Tensors, batch: api.Tensors, inputs: api.Tensors) -> torch.Tensor:
        """Return the mean squared error of the next reading."""
        errors = self._errors(params, batch["windows"]).mean(-1)
        return (batch["weights"] * errors).sum() / batch["weights"].sum()

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean squared error over the windows of a split, and their number."""
        with torch.no_grad():
            error = float(self._errors(api.tensors(model), self._windows[split]).mean())
        return {"mse": error}, {"mse": float(len(self._windows[split]))}

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return the error of repeating the last reading."""
        error = float(self._windows[split].diff()[..., -1].square().mean())
        return {"last_mse": error}, {"last_mse": float(len(self._windows[split]))}

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return the squared errors of each station's windows, for the verdict."""
        params = api.tensors(model)
        with torch.no_grad():
            return [self._errors(params, w).mean(-1).double().numpy() for w in self._stations[split]]

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same of repeating the last reading."""
        changes = [windows.diff()[..., -1] for windows in self._stations[split]]
        return {"last reading": [change.square().mean(-1).double().numpy() for change in changes]}

    def _errors(self, params: api.Tensors, windows: torch.Tensor) -> torch.Tensor:
        forecast: torch.Tensor = functional_call(self.module, params, (windows[..., :-1].flatten(1),))
        return (forecast - windows[..., -1]).square()


def _scaled(values: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Return the readings, T × F, by mean and deviation of the first ones, which are for training."""
    first = values[: max(1, round(share * len(values)))]
    scaled: NDArray[np.float32] = (values - first.mean(0)) / np.maximum(first.std(0), np.float32(1e-6))
    return scaled


def _generated(k: int, seed: int) -> Station:
    rng, hours = api.own_rng(seed, f"station-{k:03}"), np.arange(DEMO_HOURS)
    day = np.stack([np.sin(hours / 24 * 2 * np.pi), np.cos(hours / 24 * 2 * np.pi)], axis=1)
    return Station(f"station-{k:03}", (day + 0.1 * rng.normal(size=day.shape)).astype(np.float32))


TASK = api.ClientTask(SPEC, ("station", "stations"), SCHEMA, "stations.csv", DEMO_STATIONS, read, write, WeatherLearner)
