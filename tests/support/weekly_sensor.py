"""Hourly sensor whose weeks are all alike, so that its next readings can be computed."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.learner import TrafficLearner
from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar
from tests.support.build import learner_of
from tests.support.hourly import HOURLY

Floats = NDArray[np.float64]
Change = Callable[[Floats], None]
WEEKS = 6
START = np.datetime64("2024-01-01T00:00", "m")
"""A Monday."""


def week() -> Floats:
    """Return a week of hourly volumes: 0 before 05:00, then a hump of unequal hours, lower at weekends."""
    hour, day = np.arange(168) % 24, np.arange(168) // 24
    return np.where(hour < 5, 0.0, (100 + 30 * hour - hour**2) * np.where(day < 5, 1.0, 0.5))


def weekly_config(method: str = "fedavg", **options: Scalar) -> RunConfig:
    small: dict[str, Scalar] = {"method": method, "task": "traffic", "run-id": "toy", "tasks.traffic.hidden": 3}
    return parse(small | {key.replace("__", "."): value for key, value in options.items()})


def unchanged(values: Floats) -> None: ...


def double_last_days(values: Floats) -> None:
    """Double the last ten days, which training holds out."""
    values[-10 * 24 :] *= 2


def weekly_learner(
    config: RunConfig | None = None, change: Change = unchanged, hours: int = WEEKS * 168
) -> TrafficLearner:
    """Prepare the sensor after a change of its readings."""
    values = np.resize(week(), hours)
    change(values)
    series = Series("a", START, values[:, None], np.ones((len(values), 1), bool))
    learner: TrafficLearner = learner_of(config or weekly_config(), HOURLY, [series])
    return learner
