"""Traffic task: forecast of the next day with a property in signal temporal logic (algorithms.md §3)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from common.errors import ConfigError
from common.logic.parser import read_formula
from common.metrics import LOSS, MODEL_FAMILIES, MetricFamily, MetricSpec, error, share
from common.privacy.claims import PROPERTIES
from common.tasks.closed_form import ClosedForm
from common.tasks.spec import Comparison, Objective, TaskRun, TaskSpec
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.options import TrafficOptions, compared_variables
from common.tasks.traffic.vocabulary import SensorVariables, demo_variables

if TYPE_CHECKING:
    from torch import nn


def build_model(run: TaskRun[TrafficOptions, SensorVariables]) -> "nn.Module":
    """Return the forecaster.

    Raises:
        ConfigError: The property names variables that the vocabulary lacks.
    """
    from common.tasks.traffic.model import build_forecaster

    if run.options.property in ("difference", "nested"):
        compared_variables(run.options, run.vocabulary)
    shares = PROPERTIES in run.method.uncovered()
    if shares and run.privacy.unit != "none" and run.options.property in ("mined", "implication", "nested"):
        raise ConfigError(
            f"tasks.traffic.property={run.options.property} cannot have noise, since its form depends on the data;"
            " name existence, until or eventualities, or train with another method"
        )
    if run.options.property == "formula":
        read_formula(run.options.formula, run.options.horizon, run.vocabulary.variables)
    return build_forecaster(len(run.vocabulary.variables), run.options, paper=run.model == "paper")


TASK = TaskSpec(
    name="traffic",
    summary="Forecast the next day of road sensors and other hourly readings",
    options=TrafficOptions,
    vocabulary=SensorVariables,
    demo=demo_variables,
    build_model=build_model,
    metrics=(
        replace(LOSS, short_table=False),
        error(
            "mse",
            "mse",
            "Mean squared error",
            "Mean squared error of forecasts; each sensor in standard deviations of its own past.",
        ),
        error(
            "profile_mse",
            "profile mse",
            "Mean squared error of the profile",
            "Baseline: mean reading of the sensor at that time of the week.",
            headline=False,
            baseline=True,
        ),
        error(
            "ridge_mse",
            "ridge mse",
            "Mean squared error of the ridge baseline",
            "Baseline: profile plus the sensor's ridge regression.",
            headline=False,
            baseline=True,
        ),
        error(
            "last_week_mse",
            "last week mse",
            "Mean squared error of last week",
            "Baseline: the same hours of the week before.",
            headline=False,
            baseline=True,
        ),
        share(
            "rho_point",
            "satisfied(points)",
            "Rule satisfaction, points",
            "Share of forecast readings that satisfy the sensor's property.",
            headline=False,
        ),
        share(
            "rho_window",
            "satisfied(windows)",
            "Rule satisfaction, windows",
            "Share of pairs of forecast readings that both satisfy the property.",
            headline=False,
            short_table=False,
        ),
        share(
            "rho_trace",
            "satisfied",
            "Rule satisfaction, traces",
            "Share of whole forecasts that satisfy the property; of the truth itself, the achieved coverage.",
        ),
        MetricSpec(
            "coverage80",
            "coverage80",
            "Coverage of 80 % intervals",
            "",
            3,
            "Share of readings inside intervals from the sensor's earlier errors; 0.8 is right.",
            headline=False,
            short_table=False,
            low=0,
            high=1,
        ),
        MetricSpec(
            "property_width",
            "width",
            "Width of the property",
            "",
            3,
            "Mean distance of the bounds in standard deviations; a wide property is easy to satisfy.",
            headline=False,
            baseline=True,
            low=0,
        ),
    ),
    families=(
        *(replace(family, short_table=(f"{family.prefix}mse",)) for family in MODEL_FAMILIES),
        MetricFamily("teacher_", "teacher", headlines=("teacher_mse",), short_table=("teacher_mse",)),
        MetricFamily("truth_", "the truth itself", baseline=True, better=False, short_table=("truth_rho_trace",)),
    ),
    objective=Objective("mse"),
    head=("head.", "network.head."),  # dense layer of a recurrent network, blocks of a transformer (§3.7)
    closed_form=ClosedForm(
        sums=2,
        noised_sums=1,
        start=lambda run: shared_ridge.sizes(run.vocabulary, run.options, run.privacy.unit != "none"),
        template=shared_ridge.template,
        solve=shared_ridge.solve,
        lasting=shared_ridge.LASTING,
        entries=shared_ridge.ENTRIES,
    ),
    defaults={"method": "ridge"},  # docs/explanation/methods/ridge.md
    paper={
        "method": "fedstl",
        "rounds": 40,
        "training.optimizer": "adam",
        "training.lr": 0.01,
        "training.local-steps": 12,
        "algorithm.fedstl.cluster-steps": 4,
        "tasks.traffic.property": "paper",
    },
    network={"method": "fedstl"},
    simple={"mse": "ridge_mse"},
    comparison=Comparison("sensors", "own ridge regression", {"weekly profile": {"mse": "profile_mse"}}),
)
