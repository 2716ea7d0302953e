"""The traffic task: what server and clients agree on about forecasting a sensor's next day."""

from typing import Literal, Self

from pydantic import Field, model_validator

from common.errors import ConfigError
from common.tasks.spec import TaskOptions
from common.tasks.traffic.vocabulary import SensorVariables


class TrafficOptions(TaskOptions):
    """`[tasks.traffic]`."""

    network: Literal["rnn", "gru", "lstm", "transformer"] = "gru"
    """The paper's forecasters (algorithms.md §3.8)."""

    history: int = Field(120, ge=2)
    """Steps a forecast looks back on."""

    horizon: int = Field(24, ge=1)
    """Steps forecast."""

    hidden: int = Field(16, ge=1)
    """Width of the recurrent cells."""

    slice: Literal["yesterday", "paper", "latest"] = "yesterday"
    """Which stretch of the history step t of the horizon sees: x[t+1 : t+1+L], whose last reading is of the same hour a
    day before; the paper's x[t : t+L], which never shows that hour; or the whole history at every step, for readings of
    seconds, of which the last tell most. L = history − horizon."""

    ridge: Literal["chosen", "none"] = "chosen"
    """Whether the default model starts from the client's own ridge regression on what its profile leaves over, with the λ
    that forecasts each eighth of the client's past best from the others; or from the profile alone."""

    property: Literal["calibrated", "weekday", "paper", "difference"] = "calibrated"
    """What a client infers of its past: hourly ranges for working days and weekends, widened until whole past days obey in
    the share `coverage`; the same ranges as they are; the paper's twelve two-hour ranges; or by how much, at each hour, one
    variable stays above another (template 4), calibrated too."""

    pair: str = ""
    """Of `property=difference`, x₁ and x₂ of x₁ − x₂ > a, such as `vehicle_number,occupancy`; empty for the first two
    variables. Each counts in its own standard deviations."""

    coverage: float = Field(0.9, gt=0, lt=1)
    """Share of past days, each left out with its week, that calibrated properties hold on."""

    newcomer_days: int = Field(14, ge=0)
    """Days' worth of training readings below which FedSTL pools a sensor's property from members that are alike in shape,
    groups of five at least; 0 leaves every sensor to its own."""

    property_weight: float = Field(1.0, ge=0)
    """λ of F = MSE + λ·L_p (Eq 2)."""

    batch: int = Field(64, ge=1)
    """Windows of a local step, drawn anew each step."""

    test_share: float = Field(0.1, gt=0, lt=1)
    """Last share of a series, held out for testing."""

    validation_share: float = Field(0.1, ge=0, lt=1)
    """Share before that, held out for choosing rates and rounds."""

    count_offset: bool = False
    """Whether the default model starts from half the client's own line and half everybody's, made of sums over all clients
    (`traffic_lags`) that clients give in clear."""

    @model_validator(mode="after")
    def _history_holds_a_horizon(self) -> Self:
        if self.history < self.horizon:
            raise ValueError(f"history {self.history} is shorter than horizon {self.horizon}; make it as long")
        if self.count_offset and self.ridge == "none":
            raise ValueError("count-offset is half of a line that ridge=none does without; set ridge=chosen")
        return self


def compared(options: TrafficOptions, measures: SensorVariables) -> tuple[int, int]:
    """Which two variables `property=difference` compares.

    Raises:
        ConfigError: The pair does not name two different variables of the federation.
    """
    names = options.pair.split(",") if options.pair else list(measures.variables[:2])
    places = [measures.variables.index(name.strip()) for name in names if name.strip() in measures.variables]
    if len(names) != 2 or len(set(places)) != 2:
        raise ConfigError(
            f"tasks.traffic.property=difference compares two variables, tasks.traffic.pair says '{options.pair}';"
            f" name two of {', '.join(measures.variables)}"
        )
    return places[0], places[1]
