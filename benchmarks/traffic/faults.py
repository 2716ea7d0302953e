"""What the teacher is worth when a sensor fails: forecasts from broken histories, before and after correction.

One FedAvg GRU (the paper's model) is trained on sound data; then only what it looks back on is broken, never the truth. The
properties were inferred from sound training days.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from torch.func import functional_call

from benchmarks.memory import Memory
from benchmarks.traffic.experiments import Experiment
from benchmarks.traffic.sets import Setting
from client.tasks.traffic.prepare import Floats, Sensor, prepare
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import build_model, tensors
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.simulation import simulate

KINDS = ("paper", "weekday", "calibrated")
Break = Callable[[Floats, Sensor, np.random.Generator], Floats]
"""(histories N × H × D in standard deviations, the sensor, randomness) -> broken histories."""


@dataclass(frozen=True)
class Fault:
    """MSE over broken histories: of the student, and of its forecasts corrected by each kind of property."""

    title: str
    student: float
    corrected: dict[str, float]

    def cut(self, kind: str) -> float:
        """Share of the student's MSE that the correction takes away."""
        return 1 - self.corrected[kind] / self.student


def faults(setting: Setting, folder: Path, memory: Memory) -> list[Fault]:
    """The first is none; no fault at all if that is not known and must not be computed."""
    key = f"{setting.key}-faults"
    found = memory.recall(key, lambda: [asdict(fault) for fault in _computed(setting, folder, memory.folder)])
    return [Fault(**fault) for fault in found or ()]


def _computed(setting: Setting, folder: Path, cache: Path) -> list[Fault]:
    dataset = setting.dataset(folder, cache)
    names = cache / f"{setting.key}-measures.json"
    names.write_text(dataset.vocabulary.to_json(), "utf-8")
    flat = Experiment("faults", "", "fedavg").config(0, setting.uploads, setting.cohort)
    config = parse({**flat, "run-id": f"{setting.key}-faults", "catalogue": str(names)})
    model = cache / config.run_id / "model.safetensors"
    if not model.exists():
        simulate(config, dataset, cache, together=20)
    forecaster = _forecaster(config, dataset.vocabulary.variables, model)
    sensors = {
        kind: [
            prepare(series, dataset.vocabulary, TrafficOptions.model_validate({"property": kind}), residual=False)
            for series in dataset.units
        ]
        for kind in KINDS
    }
    return [_measured(title, forecaster, sensors, broken) for title, broken in FAULTS.items()]


def _forecaster(config: RunConfig, variables: tuple[str, ...], path: Path) -> Callable[[Floats], Floats]:
    module = build_model(TASK, config.task_run(TASK, SensorVariables(variables=variables)))
    params = tensors(load_file(path))

    def forecast(histories: Floats) -> Floats:
        with torch.no_grad():
            given = torch.from_numpy(histories.astype(np.float32))
            answer: torch.Tensor = functional_call(module, params, (given,))
        return np.asarray(answer.double().numpy())

    return forecast


def _measured(
    title: str, forecast: Callable[[Floats], Floats], sensors: dict[str, list[Sensor]], broken: Break
) -> Fault:
    student: list[float] = []
    corrected: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for k, sound in enumerate(sensors[KINDS[0]]):
        places = sound.test[:, None] + np.arange(24)
        past = sound.values[sound.test[:, None] + np.arange(-120, 0)]
        guess = forecast(broken(past, sound, np.random.default_rng([0, k])))
        student.append(sound.error(guess, places))
        for kind in KINDS:
            sensor = sensors[kind][k]
            corrected[kind].append(sensor.error(sensor.ranges.project(guess, sensor.clock[places]), places))
    means = {kind: float(np.mean(errors)) for kind, errors in corrected.items()}
    return Fault(title, float(np.mean(student)), means)


def _dead(hours: int) -> Break:
    def broken(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
        nothing = sensor.scaler.scale(np.zeros((1, past.shape[2])))
        return np.concatenate([past[:, :-hours], np.broadcast_to(nothing, past[:, -hours:].shape)], axis=1)

    return broken


def _spikes(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    return np.asarray(past + 5 * rng.choice([-1.0, 0.0, 1.0], past.shape, p=[0.025, 0.95, 0.025]))


def _scaled(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    return np.asarray(sensor.scaler.scale(1.5 * sensor.scaler.unscale(past)))


FAULTS: dict[str, Break] = {
    "sound": lambda past, sensor, rng: past,
    "last 6 hours dead": _dead(6),
    "last 24 hours dead": _dead(24),
    "5 % spikes of ± 5 sd": _spikes,
    "counter × 1.5": _scaled,
}
