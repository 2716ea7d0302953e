"""Ratings task: ratings of unseen items, relative to each rater's own mean (algorithms.md §4)."""

from typing import TYPE_CHECKING

from common.metrics.known import LOSS, MODEL_FAMILIES
from common.metrics.spec import MetricSpec
from common.tasks.comparison import Comparison
from common.tasks.ratings.demo import demo_products
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.tasks.spec import Objective, TaskRun, TaskSpec

if TYPE_CHECKING:
    from torch import nn


def build_model(run: TaskRun[RatingsOptions, ProductCatalogue]) -> "nn.Module":
    """Return the paper's star-graph network or the default item scores."""
    from common.tasks.ratings.model import build_rating_model

    return build_rating_model(len(run.vocabulary.items), run.options, paper=run.model == "paper")


TASK = TaskSpec(
    name="ratings",
    summary="Predict ratings of unseen items",
    options=RatingsOptions,
    vocabulary=ProductCatalogue,
    demo=demo_products,
    build_model=build_model,
    metrics=(
        LOSS,
        MetricSpec(
            "rmse",
            "rmse",
            "RMSE",
            "lower",
            4,
            "Root mean squared error of a predicted rating, as a share of the scale.",
            low=0,
            summed_to=1.0,
        ),
        MetricSpec(
            "rmse_local_mean",
            "rmse(own mean)",
            "RMSE of own mean",
            "lower",
            4,
            "Baseline: each rater's own mean.",
            baseline=True,
            low=0,
            summed_to=1.0,
        ),
        MetricSpec(
            "rmse_prior_mean",
            "rmse(prior mean)",
            "RMSE of the public prior mean",
            "lower",
            4,
            "Baseline: always the option `prior`, in place of the mean of all clients, which is unknown.",
            headline=False,
            baseline=True,
            low=0,
            summed_to=1.0,
        ),
        MetricSpec(
            "rmse_half",
            "rmse(half)",
            "RMSE of one half",
            "lower",
            4,
            "Baseline: always the middle of the scale.",
            headline=False,
            baseline=True,
            low=0,
            summed_to=1.0,
        ),
        MetricSpec(
            "mae",
            "mae",
            "MAE",
            "lower",
            3,
            "Mean absolute error of a predicted rating, as a share of the scale.",
            headline=False,
            low=0,
            summed_to=1.0,
        ),
        MetricSpec(
            "f1",
            "f1",
            "F1",
            "higher",
            3,
            "Harmonic mean of precision and recall of liked items.",
            low=0,
            high=1,
        ),
        MetricSpec(
            "f1_all_liked",
            "f1(all)",
            "F1 of all liked",
            "higher",
            3,
            "Baseline: every item is predicted as liked.",
            headline=False,
            baseline=True,
            low=0,
            high=1,
        ),
    ),
    families=MODEL_FAMILIES,
    objective=Objective("rmse"),
    head=("user",),
    client_only=("user",),
    # One report per client holds all training data of the default model, and it gets the whole budget.
    defaults={"method": "fedavg", "rounds": 1, "privacy.mechanism": "privunit"},
    loss_is_error=lambda model: model == "paper",
    simple={"rmse": "rmse_local_mean", "f1": "f1_all_liked"},
    comparison=Comparison("rmse", "raters", "own mean"),
)
