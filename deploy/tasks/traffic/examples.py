"""Forecasts of held-out readings, for the live page."""

from dataclasses import replace

import numpy as np

from client.inference.choose_model import fit_model
from client.tasks.traffic.cold_start import with_pooled_property
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.federated_ridge import with_federated_ridge
from client.tasks.traffic.judgement import limits
from client.tasks.traffic.learner import TrafficLearner
from common.arrays import Arrays, Floats
from common.tasks.traffic.counts import STATICS
from common.tasks.traffic.task import TASK
from deploy.tasks.spec import ForecastExample, TrainedRun
from deploy.tasks.traffic.clock import digits_for

COUNT = 3
"""Number of sensors."""

NOTE = "Held-out readings from {first}; the interval is the property of the sensor's past."

FORMULA_NOTE = "Held-out readings from {first}."


def held_out_forecasts(run: TrainedRun) -> list[ForecastExample]:
    """Return the last held-out forecast of the first sensors that hold readings out."""
    trained = dict(run.model)
    pooled = {name: trained.pop(name) for name in STATICS if name in trained}
    dataset: Sensors = run.read("")
    found: list[ForecastExample] = []
    for series in dataset.units:
        if len(found) == COUNT:
            break
        found += _forecast(run, dataset, series, trained, pooled)
    return found


def _forecast(
    run: TrainedRun, dataset: Sensors, series: Series, trained: Arrays, pooled: Arrays
) -> list[ForecastExample]:
    """Return the forecast of one sensor's first variable; empty if the sensor holds nothing out."""
    learner = TrafficLearner(run.config.task_run(TASK, dataset.vocabulary), replace(dataset, units=(series,)))
    [sensor], options = learner.sensors, learner.options
    if not len(sensor.test):
        return []
    model = fit_model(run.config, learner, trained, pooled)
    sensor = with_pooled_property(with_federated_ridge(sensor, pooled, options), pooled, options)
    first = sensor.test[-1:]
    student = learner.forecasts(model, sensor, first)[0]
    truth, places = sensor.targets(first, options.horizon)
    low, high = limits(sensor, student, int(first[0]))
    truth, student, low, high = (sensor.scaler.unscale(table)[:, 0] for table in (truth[0], student, low, high))
    times = sensor.series.times(sensor.step)[places[0]].astype("datetime64[m]")
    digits = digits_for(float(np.ptp(truth)))
    note = (FORMULA_NOTE if sensor.stated else NOTE).format(first=str(times[0]).replace("T", " "))
    clock = [str(time)[11:] for time in times]
    values = (_values(table, digits) for table in (student, low, high, truth))
    return [ForecastExample(f"{series.name}: {dataset.vocabulary.variables[0]}", note, digits, clock, *values)]


def _values(table: Floats, digits: int) -> list[float | None]:
    return [round(float(value), digits + 2) if np.isfinite(value) else None for value in table]
