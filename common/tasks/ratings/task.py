"""Ratings task: ratings of unseen items, relative to each rater's own mean (algorithms.md §4)."""

from typing import TYPE_CHECKING

from common.metrics.known import LOSS, MODEL_FAMILIES
from common.metrics.spec import error, share
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
        error(
            "rmse",
            "rmse",
            "RMSE",
            "Root mean squared error of a predicted rating, as a share of the scale.",
            summed_to=1.0,
        ),
        error(
            "rmse_local_mean",
            "rmse(own mean)",
            "RMSE of own mean",
            "Baseline: each rater's own mean.",
            baseline=True,
            summed_to=1.0,
        ),
        error(
            "rmse_prior_mean",
            "rmse(prior mean)",
            "RMSE of the public prior mean",
            "Baseline: always the option `prior`, in place of the mean of all clients, which is unknown.",
            headline=False,
            baseline=True,
            summed_to=1.0,
        ),
        error(
            "rmse_half",
            "rmse(half)",
            "RMSE of one half",
            "Baseline: always the middle of the scale.",
            headline=False,
            baseline=True,
            summed_to=1.0,
        ),
        error(
            "mae",
            "mae",
            "MAE",
            "Mean absolute error of a predicted rating, as a share of the scale.",
            3,
            headline=False,
            summed_to=1.0,
        ),
        share("f1", "f1", "F1", "Harmonic mean of precision and recall of liked items."),
        share(
            "f1_all_liked",
            "f1(all)",
            "F1 of all liked",
            "Baseline: every item is predicted as liked.",
            headline=False,
            baseline=True,
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
    records_per_example=1_000,  # an example is a rater, whose number of ratings is private
)
