"""Forecasts from broken histories: as they are, corrected by the teacher, and with repaired histories.

One FedAvg GRU (the paper's model) is trained on sound data. Then only the histories that it reads are broken, never the
truth. The same histories are read by profile and ridge, from which the default model departs little. Properties are
inferred from sound training days.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch.func import functional_call

from client.tasks.traffic.baseline import Windows, complete_windows, ridge_weights
from client.tasks.traffic.metrics import correct
from client.tasks.traffic.sensor import Sensor, prepare
from common.arrays import Floats, Ints
from common.models import build_model, tensors
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.shared_ridge import PENALTIES
from common.tasks.traffic.task import TASK
from studies.harness.bench import Bench, FinishedRun
from studies.harness.row import Metrics, Trial
from studies.traffic.broken_histories import BREAKS, REPAIRS, Break
from studies.traffic.experiments import FAULTS
from studies.traffic.sets import Setting

KINDS = ("paper", "weekday", "calibrated")
HISTORY, HORIZON = 120, 24
Answer = Callable[[Floats, Ints], Floats]
"""(histories N × H × D, first targets N) -> forecasts N × P × D, in standard deviations."""


def faults(bench: Bench, setting: Setting) -> dict[str, Metrics]:
    """Return fault -> MSE of the student, of its corrections, and of both models with repaired histories."""
    [fedavg] = [one for one in setting.experiments() if one.key == "fedavg"]
    trained = Bench(bench.set, lambda: bench.dataset, bench.store, _trial_of, stacked=bench.stacked)
    return trained.train(f"{bench.set}-faults", {**fedavg.settings, "seed": 0}).clients


def _trial_of(run: FinishedRun) -> Trial:
    """Measure all faults of one run; they take the place of clients."""
    dataset, student = run.dataset, _student(run)
    errors: dict[str, dict[str, list[float]]] = {key: {} for key in FAULTS}
    for k, series in enumerate(dataset.units):
        sensors = {
            kind: prepare(series, dataset.vocabulary, TrafficOptions(property=kind), residual=kind == "calibrated")
            for kind in KINDS
        }
        ridge = _ridge(sensors["calibrated"])
        for key, found in errors.items():
            for name, error in _errors(student, ridge, sensors, BREAKS[key], k).items():
                found.setdefault(name, []).append(error)
    return Trial(
        clients={key: {name: float(np.mean(all_)) for name, all_ in found.items()} for key, found in errors.items()}
    )


def _student(run: FinishedRun) -> Answer:
    """Return the trained model as a function of histories."""
    module = build_model(TASK, run.config.task_run(TASK, run.dataset.vocabulary))
    params = tensors(run.folder.load_model()[0])

    def forecast(histories: Floats, first: Ints) -> Floats:
        with torch.no_grad():
            answer: torch.Tensor = functional_call(module, params, (torch.from_numpy(histories.astype(np.float32)),))
        return np.asarray(answer.double().numpy())

    return forecast


def _ridge(sensor: Sensor) -> Answer:
    """Return profile and ridge of a sensor as a function of histories."""
    options = TrafficOptions()
    windows = Windows(sensor.inputs - sensor.base, HISTORY, HORIZON)
    weights, _ = ridge_weights(windows, complete_windows(sensor.usable, options), PENALTIES)

    def forecast(histories: Floats, first: Ints) -> Floats:
        departures = histories - sensor.base[first[:, None] + np.arange(-HISTORY, 0)]
        flat = departures.swapaxes(1, 2).reshape(len(first), -1) @ weights
        rest = flat.reshape(len(first), -1, HORIZON).swapaxes(1, 2)
        return np.asarray(rest + sensor.profile[first[:, None] + np.arange(HORIZON)])

    return forecast


def _errors(student: Answer, ridge: Answer, sensors: dict[str, Sensor], break_: Break, k: int) -> Metrics:
    """Return each error of one sensor under a fault."""
    sound, first = sensors["calibrated"], sensors["calibrated"].test
    places, before = first[:, None] + np.arange(HORIZON), first[:, None] + np.arange(-HISTORY, 0)
    broken = break_(sound.values[before], sound, np.random.default_rng([0, k]))
    guess = student(broken, first)
    found = {"student": sound.error(guess, places), "ridge": sound.error(ridge(broken, first), places)}
    for kind, sensor in sensors.items():
        found[kind] = sound.error(correct(sensor, guess, first), places)
    for name, repair in REPAIRS.items():
        mended = repair(broken, sound, before)
        found[f"ridge_{name}"] = sound.error(ridge(mended, first), places)
        guess = student(mended, first)
        found[f"student_{name}"] = sound.error(guess, places)
        if name == "property":
            found["both"] = sound.error(correct(sound, guess, first), places)
            found["flagged"] = float((mended != broken).mean())
    return found
