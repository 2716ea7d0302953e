"""Forecasts from broken histories, before and after correction by the teacher.

One FedAvg GRU (the paper's model) is trained on sound data. Then only the histories that it reads are broken, never the
truth. The properties are inferred from sound training days.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.func import functional_call

from benchmarks.harness.bench import Bench, FinishedRun
from benchmarks.harness.row import Metrics, Trial
from benchmarks.traffic.experiments import FAULTS
from benchmarks.traffic.sets import Setting
from client.tasks.traffic.prepare import Floats, Sensor, prepare
from common.models import build_model, tensors
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK

KINDS = ("paper", "weekday", "calibrated")
HISTORY, HORIZON = 120, 24
Break = Callable[[Floats, Sensor, np.random.Generator], Floats]
"""(histories N × H × D in standard deviations, the sensor, generator) -> broken histories."""


def faults(bench: Bench, setting: Setting) -> dict[str, Metrics]:
    """Return fault -> MSE of the student, and of its forecasts corrected by each kind of property."""
    [fedavg] = [one for one in setting.experiments() if one.key == "fedavg"]
    trained = Bench(bench.set, lambda: bench.dataset, bench.store, _trial_of, stacked=bench.stacked)
    return trained.train(f"{bench.set}-faults", {**fedavg.settings, "seed": 0}).clients


def _trial_of(run: FinishedRun) -> Trial:
    """Measure all faults of one run; they take the place of clients."""
    forecast, dataset = _forecaster(run), run.dataset
    sensors = {
        kind: [
            prepare(series, dataset.vocabulary, TrafficOptions.model_validate({"property": kind}), residual=False)
            for series in dataset.units
        ]
        for kind in KINDS
    }
    return Trial(clients={key: _errors(forecast, sensors, BREAKS[key]) for key in FAULTS})


def _forecaster(run: FinishedRun) -> Callable[[Floats], Floats]:
    """Return the trained model as a function of histories."""
    module = build_model(TASK, run.config.task_run(TASK, run.dataset.vocabulary))
    params = tensors(run.folder.load_model()[0])

    def forecast(histories: Floats) -> Floats:
        with torch.no_grad():
            answer: torch.Tensor = functional_call(module, params, (torch.from_numpy(histories.astype(np.float32)),))
        return np.asarray(answer.double().numpy())

    return forecast


def _errors(forecast: Callable[[Floats], Floats], sensors: dict[str, list[Sensor]], break_: Break) -> Metrics:
    """Return the mean over sensors of each error under a fault."""
    errors: dict[str, list[float]] = {"student": [], **{kind: [] for kind in KINDS}}
    for k, sound in enumerate(sensors[KINDS[0]]):
        places = sound.test[:, None] + np.arange(HORIZON)
        past = sound.values[sound.test[:, None] + np.arange(-HISTORY, 0)]
        guess = forecast(break_(past, sound, np.random.default_rng([0, k])))
        errors["student"].append(sound.error(guess, places))
        for kind in KINDS:
            sensor = sensors[kind][k]
            errors[kind].append(sensor.error(sensor.ranges.project(guess, sensor.clock[places]), places))
    return {name: float(np.mean(values)) for name, values in errors.items()}


@dataclass(frozen=True)
class Dead:
    """Counter that reads 0 in the last hours of the history."""

    hours: int

    def __call__(self, past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
        """Return histories whose last hours are zero counts."""
        zero = sensor.scaler.scale(np.zeros((1, past.shape[2])))
        return np.concatenate([past[:, : -self.hours], np.broadcast_to(zero, past[:, -self.hours :].shape)], axis=1)


def _sound(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    return past


def _spikes(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    return np.asarray(past + 5 * rng.choice([-1.0, 0.0, 1.0], past.shape, p=[0.025, 0.95, 0.025]))


def _scale(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    return np.asarray(sensor.scaler.scale(1.5 * sensor.scaler.unscale(past)))


BREAKS: dict[str, Break] = {
    "sound": _sound,
    "dead-6h": Dead(6),
    "dead-24h": Dead(24),
    "spikes": _spikes,
    "scaled": _scale,
}
