"""Faults of histories, and repairs of broken ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from client.tasks.traffic.sensor import Sensor
from common.arrays import Flags, Floats, Ints

Break = Callable[[Floats, Sensor, np.random.Generator], Floats]
"""(histories N × H × D in standard deviations, the sensor, generator) -> broken histories."""

Repair = Callable[[Floats, Sensor, Ints], Floats]
"""(broken histories N × H × D, the sensor, places of their readings N × H) -> repaired histories."""

STUCK_HOURS = 24
DRIFT = 0.02
"""Growth of a drifting counter a day."""

FAR = 3.0
"""Deviations beyond which the rule on z and the Hampel filter take a reading for a fault."""

WINDOW = 7
"""Readings of the Hampel filter."""


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


def _stuck(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    last = np.repeat(past[:, -STUCK_HOURS - 1, None], STUCK_HOURS, axis=1)
    return np.concatenate([past[:, :-STUCK_HOURS], last], axis=1)


def _shift(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    return np.concatenate([past[:, :1], past[:, :-1]], axis=1)


def _drift(past: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    growth = (1 + DRIFT) ** (np.arange(past.shape[1]) / 24)
    return np.asarray(sensor.scaler.scale(growth[:, None] * sensor.scaler.unscale(past)))


BREAKS: dict[str, Break] = {
    "sound": _sound,
    "dead-6h": Dead(6),
    "dead-24h": Dead(24),
    "spikes": _spikes,
    "scaled": _scale,
    "stuck": _stuck,
    "shifted": _shift,
    "drift": _drift,
}


def _forbidden(past: Floats, sensor: Sensor, places: Ints) -> Flags:
    """Return True for each reading that the sensor's property forbids, N × H × D."""
    return sensor.ranges.excess(past, sensor.clock[places], sensor.calibrated.margins[places]) > 0


def _by_property(past: Floats, sensor: Sensor, places: Ints) -> Floats:
    return np.where(_forbidden(past, sensor, places), sensor.profile[places], past)


def _by_z(past: Floats, sensor: Sensor, places: Ints) -> Floats:
    return np.where(np.abs(past) > FAR, sensor.profile[places], past)


def _by_hampel(past: Floats, sensor: Sensor, places: Ints) -> Floats:
    padded = np.pad(past, ((0, 0), (WINDOW // 2, WINDOW // 2), (0, 0)), mode="reflect")
    windows = sliding_window_view(padded, WINDOW, axis=1)
    middle = np.median(windows, axis=-1)
    spread = 1.4826 * np.median(np.abs(windows - middle[..., None]), axis=-1)
    return np.where(np.abs(past - middle) > FAR * spread, middle, past)


def _by_last_week(past: Floats, sensor: Sensor, places: Ints) -> Floats:
    forbidden = _forbidden(past, sensor, places)
    return np.where(forbidden, sensor.values[np.maximum(places - sensor.week, 0)], past)


REPAIRS: dict[str, Repair] = {
    "property": _by_property,
    "z": _by_z,
    "hampel": _by_hampel,
    "last_week": _by_last_week,
}
"""Repairs: the product's, and those that it is compared with."""
