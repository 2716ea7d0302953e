"""Options of the traffic task."""

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from common.errors import ConfigError
from common.logic.parser import read_formula
from common.privacy.claims import PROPERTIES
from common.tasks.options import Capabilities, TaskOptions
from common.tasks.traffic.vocabulary import DAY, SensorVariables

StatedKind = Literal["calibrated", "weekday", "paper", "difference", "formula"]
TemplateKind = Literal["existence", "until", "implication", "nested", "eventualities", "mined"]

TEMPLATES = frozenset(get_args(TemplateKind))
"""Properties of templates over a whole forecast, with parameters that each client infers."""

MINED = "which template a client mined, under methods that share properties; under others it stays on the client"
"""Uncovered channel of runs with mined properties."""

FORMULA = (
    "the formula of the forecasts, which is part of the run's configuration; no property inferred from data is sent"
)
"""Note on runs under a formula that a user wrote."""


class TrafficOptions(TaskOptions):
    """Options `tasks.traffic.*`."""

    network: Literal["rnn", "gru", "lstm", "transformer"] = "gru"
    """Network of the forecaster (algorithms.md §3.8)."""

    history: int = Field(120, ge=2)
    """Number of steps of the history that a forecast reads."""

    horizon: int = Field(24, ge=1)
    """Number of forecast steps."""

    hidden: int = Field(16, ge=1)
    """Width of the recurrent cells."""

    slice: Literal["yesterday", "paper", "latest"] = "yesterday"
    """Part of the history that step t of the horizon reads, with L = history − horizon.

    `yesterday`: x[t+1 : t+1+L], whose last reading is the same hour of the day before. `paper`: x[t : t+L], which never
    contains that hour. `latest`: the whole history at every step, for readings of seconds.
    """

    ridge: Literal["chosen", "none"] = "chosen"
    """Offset of the default model.

    `chosen`: the client's ridge regression on residuals of its profile, with λ by eight-fold cross-validation on its past;
    `none`: the profile alone.
    """

    property: Literal[StatedKind, TemplateKind] = "calibrated"
    """STL property of forecasts: inferred by each client from its past, or a formula for all clients.

    `calibrated`: hourly ranges for working days and weekends, which the share `coverage` of windows satisfies (conformal).
    `weekday`: the tightest such ranges of the past. `paper`: the paper's twelve two-hour ranges. `difference`: hourly
    lower bounds of the difference of two variables (template 4), calibrated too. `formula`: the text `formula`; it is public.
    `existence`, `until`, `implication`, `nested`, `eventualities`: templates 2, 3, 5, 6 and 7, which all past days satisfy.
    `mined`: the tightest property of any template and width of windows (template 8).
    """

    formula: str = ""
    """Formula of signal temporal logic for `property=formula`, in the data's own units and names.

    For example `G[0,5](volume <= 400) & F[6,10](volume >= 900)`; docs/howto/formulas.md explains the text.
    """

    anchor: Literal["auto", "midnight", "forecast"] = "auto"
    """Reading that is number 0 of a formula, inferred or written.

    `midnight`: only forecasts that begin at midnight are judged and corrected. `forecast`: the first of every forecast.
    `auto`: `midnight` if forecasts are of one day, else `forecast`.
    """

    pair: str = ""
    """Variables x₁ and x₂ of `property=difference`, x₁ − x₂ > a, and of `property=nested`.

    Such as `vehicle_number,occupancy`. Empty: the first two variables. Each is in its own standard deviations.
    """

    window_width: int = Field(2, ge=1, le=24)
    """Number of steps of the windows of templates 2, 3 and 7, and longest delay of a response in 5 and 6."""

    trigger_quantile: float = Field(0.75, gt=0, lt=1)
    """Quantile of all readings that triggers a response in templates 5 and 6."""

    coverage: float = Field(0.9, gt=0, lt=1)
    """Probability that a whole forecast window satisfies a calibrated property.

    The teacher moves forecasts by this share of their distance to it. 0.9 needs 9 past windows; with fewer, the ranges are
    widened without a guarantee.
    """

    repair: Literal["auto", "property", "none"] = "auto"
    """Repair of the histories that forecasts read.

    `property`: a reading that the sensor's own property forbids is replaced by the profile; for sensors with two weeks of
    training readings. `none`: readings are used as they are. `auto`: `property` with the default model, `none` with the
    paper's. True readings, to which forecasts are compared, never change.
    """

    newcomer_days: int = Field(9, ge=0)
    """Number of days of training readings below which FedSTL pools a sensor's property.

    The pool consists of at least five clients with similar properties. With 9 days, ranges of its own hold
    on nine days of ten. 0: every sensor keeps its own property.
    """

    property_weight: float = Field(1.0, ge=0)
    """Weight λ of the property loss in F = MSE + λ·L_p (Eq 2)."""

    batch: int = Field(64, ge=1)
    """Number of windows of a mini-batch, sampled in each local step."""

    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of a series in the test split: its end."""

    validation_share: float = Field(0.1, ge=0, lt=1)
    """Share of a series in the validation split, before the test split, for tuning and planners."""

    @model_validator(mode="after")
    def _history_holds_a_horizon(self) -> Self:
        if self.history < self.horizon:
            raise ValueError(
                f"history {self.history} is shorter than horizon {self.horizon}; set history={self.horizon}"
            )
        return self

    @model_validator(mode="after")
    def _windows_fit(self) -> Self:
        reach = 2 if self.property in ("implication", "nested") else 0
        if self.property in TEMPLATES and self.horizon < self.window_width + reach:
            raise ValueError(
                f"window-width {self.window_width} does not fit property={self.property} and horizon {self.horizon};"
                " lower window-width"
            )
        return self

    @model_validator(mode="after")
    def _formula_is_satisfiable(self) -> Self:
        if (self.property == "formula") != bool(self.formula.strip()):
            raise ValueError(
                "tasks.traffic.property=formula and the text tasks.traffic.formula belong together; set both or none"
            )
        if self.formula.strip():
            try:
                read_formula(self.formula, self.horizon)
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return self

    def check(self, model: str, method: str, capabilities: Capabilities) -> None:
        """Refuse a closed form without the ridge regression that it is.

        Raises:
            ValueError: The model of a closed form has no ridge regression.
        """
        if capabilities.closed_form and (model != "default" or self.ridge == "none"):
            raise ValueError(f"method {method} is a ridge regression; set model=default and tasks.traffic.ridge=chosen")

    def not_sent(self) -> tuple[str, ...]:
        """Channels of methods that these options close."""
        return (PROPERTIES,) if self.property == "formula" else ()

    def uncovered(self) -> tuple[str, ...]:
        """Return notes on a formula, which is public, and on mined templates."""
        notes = {"formula": (FORMULA,), "mined": (MINED,)}
        return notes.get(self.property, ())

    def is_over_days(self) -> bool:
        """Return True if the property is a formula over a whole forecast, not a bound of each reading."""
        return self.property == "formula" or self.property in TEMPLATES

    def anchors_midnight(self, step: int) -> bool:
        """Return True if a formula counts from midnight, for steps of that many seconds."""
        return self.anchor == "midnight" or (self.anchor == "auto" and self.horizon * step == DAY)


def compared_variables(options: TrafficOptions, variables: SensorVariables) -> tuple[int, int]:
    """Return the indices of the two variables of `property=difference`.

    Raises:
        ConfigError: The option `pair` does not name two different variables of the vocabulary.
    """
    names = options.pair.split(",") if options.pair else list(variables.variables[:2])
    places = [variables.variables.index(name.strip()) for name in names if name.strip() in variables.variables]
    if len(names) != 2 or len(set(places)) != 2:
        raise ConfigError(
            f"tasks.traffic.property={options.property} needs two variables, but tasks.traffic.pair is '{options.pair}';"
            f" set pair to two of {', '.join(variables.variables)}"
        )
    return places[0], places[1]
