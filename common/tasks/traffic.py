"""The traffic task: what server and clients agree on about forecasting a sensor's next day."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from common.options import Options
from common.tasks.vocabulary import Vocabulary

WEEK = np.timedelta64(7, "D")


class Measures(Vocabulary):
    """What every sensor of a federation measures, and how often."""

    variables: tuple[str, ...]
    """Names of the D variables, such as `volume`."""

    step: int = 60
    """Minutes between two readings; divides a day."""

    @model_validator(mode="after")
    def _measures_are_usable(self) -> Self:
        if not self.variables or "" in self.variables or len(set(self.variables)) < len(self.variables):
            raise ValueError("name at least one variable, and each once")
        if self.step < 1 or 24 * 60 % self.step:
            raise ValueError(f"a step of {self.step} minutes does not divide a day")
        return self

    @classmethod
    def what(cls) -> str:
        """What the names name, for error texts."""
        return "variables"


class TrafficOptions(Options):
    """`[tasks.traffic]`."""

    network: Literal["rnn", "gru", "lstm", "transformer"] = "gru"
    """The paper's forecasters (algorithms.md §3.8)."""

    history: int = Field(120, ge=2)
    """Steps a forecast looks back on."""

    horizon: int = Field(24, ge=1)
    """Steps forecast."""

    hidden: int = Field(16, ge=1)
    """Width of the recurrent cells."""

    slice: Literal["yesterday", "paper"] = "yesterday"
    """Which stretch of the history step t of the horizon sees: x[t+1 : t+1+L], whose last reading is of the same hour a
    day before, or the paper's x[t : t+L], which never shows that hour; L = history − horizon."""

    property: Literal["calibrated", "weekday", "paper"] = "calibrated"
    """What a client infers of its past: hourly ranges for working days and weekends, widened until whole past days obey in
    the share `coverage`; the same ranges as they are; or the paper's twelve two-hour ranges."""

    coverage: float = Field(0.9, gt=0, lt=1)
    """Share of past days, each left out with its week, that calibrated ranges hold on."""

    property_weight: float = Field(1.0, ge=0)
    """λ of F = MSE + λ·L_p (Eq 2)."""

    batch: int = Field(64, ge=1)
    """Windows of a local step, drawn anew each step."""

    test_share: float = Field(0.1, gt=0, lt=1)
    """Last share of a series, held out for testing."""

    validation_share: float = Field(0.1, ge=0, lt=1)
    """Share before that, held out for choosing rates and rounds."""

    count_offset: bool = False
    """Sums over clients that the model starts from; this task has none."""

    @model_validator(mode="after")
    def _history_holds_a_horizon(self) -> Self:
        if self.history < self.horizon:
            raise ValueError(f"history {self.history} is shorter than horizon {self.horizon}; make it as long")
        return self
