"""Traffic learners of short series for tests."""

import copy
from dataclasses import replace

import numpy as np
import torch

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.sensor import Sensor
from common.arrays import Arrays
from common.config.run import RunConfig
from common.models import tensors
from common.wire.messages import TrainRequest
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, sensor, world

DAYS, TRAIN = 20, 16 * 24
CONFIG = road_config("fedavg", tasks__traffic__property_weight=0.7)
PAPER = road_config("fedavg", model="paper", tasks__traffic__property="paper")


def random_model(config: RunConfig) -> Arrays:
    """Return a model whose forecasts leave the profile and violate the property."""
    rng = np.random.default_rng(3)
    return {n: (a + rng.normal(0, 0.3, a.shape)).astype(np.float32) for n, a in world(config).items()}


def learner(*series: Series, config: RunConfig = CONFIG) -> TrafficLearner:
    made: TrafficLearner = learner_of(config, MEASURES, series or (sensor(0, DAYS),))
    return made


def series_with_gaps(number: int = 0) -> Series:
    """Return a series of which 5 % are gaps, filled with zeros."""
    series = sensor(number, DAYS)
    observed = np.random.default_rng(5).random(series.values.shape) > 0.05
    return replace(series, values=np.where(observed, series.values, 0.0), observed=observed)


def forecast_of(of: TrafficLearner, model: Arrays, sensor: Sensor, first: int) -> np.ndarray:
    """Compute the forecast of one window, P × D, by the network alone."""
    past = slice(first - HISTORY, first)
    departure = torch.from_numpy((sensor.inputs[past] - sensor.base[past]).astype(np.float32)[None])
    network = copy.deepcopy(of.module)
    network.load_state_dict(tensors(model))
    with torch.no_grad():
        ridge = sensor.ridge[first] if sensor.ridge.size else 0.0
        return network(departure)[0].double().numpy() + sensor.base[first : first + HORIZON] + ridge


def step(of: TrafficLearner, model: Arrays, rows: list[int], shared: Arrays | None = None) -> float:
    batch = of.batch(TrainRequest(1, "toy:0", model, shared or {}))
    return float(of.loss(tensors(model), batch, {"rows": torch.tensor(rows)}))
