"""Series as the client holds them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from client.data.dataset import Dataset
from common.arrays import Flags, Floats
from common.tasks.traffic.vocabulary import SensorVariables


@dataclass(frozen=True)
class Series:
    """One sensor's readings on a regular grid: what becomes a client.

    Args:
        name: Private.
        start: Time of the first reading by the sensor's own clock, in minutes, or in seconds where steps are.
        values: T × D, in the data's own units; gaps are filled.
        observed: T × D, false where a gap was filled.
    """

    name: str
    start: np.datetime64
    values: Floats
    observed: Flags

    def times(self, step: int) -> NDArray[np.datetime64]:
        """Time of every reading, T; `step` in seconds."""
        count, unit = in_units(step)
        return self.start + np.arange(len(self.values)) * np.timedelta64(count, unit)


Sensors = Dataset[SensorVariables, Series]


def in_units(seconds: int) -> tuple[int, Literal["m", "s"]]:
    """Return a time as whole minutes, or as seconds where it is none."""
    return (seconds, "s") if seconds % 60 else (seconds // 60, "m")
