"""Ratings task: ratings of unseen items, relative to each rater's own mean (algorithms.md §4)."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.metrics import LOSS, error, share
from common.tasks.closed_form import ClosedForm, limit_masked
from common.tasks.ratings import neighbours
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue, demo_products
from common.tasks.spec import Comparison, Objective, TaskRun, TaskSpec

if TYPE_CHECKING:
    from torch import nn


def build_model(run: TaskRun[RatingsOptions, ProductCatalogue]) -> "nn.Module":
    """Return the paper's star-graph network or the default item scores."""
    from common.tasks.ratings.model import ItemScores, StarAttention

    items = len(run.vocabulary.items)
    return StarAttention(items, run.options, on_top=run.on_top) if run.model == "paper" else ItemScores(items)


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
            "rmse_biases",
            "rmse(biases)",
            "RMSE of own mean and biases",
            "Baseline: each rater's own mean plus the bias of each item over all raters.",
            headline=False,
            short_table=False,
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
    objective=Objective("rmse"),
    closed_form=ClosedForm(
        on_top=("paper",),  # the default model is itself a sum of reports
        sums=3,
        noised_sums=1,
        start=lambda run: neighbours.sizes(run.vocabulary, run.privacy.unit != "none"),
        template=neighbours.template,
        solve=neighbours.solve,
        limit_masked=limit_masked(neighbours.SIZES, neighbours.MOST_MASKED_ITEMS, columns=2),
        lasting=neighbours.LASTING,
        effort=neighbours.effort,
        entries=neighbours.ENTRIES,
    ),
    head=("user",),
    client_only=("user",),
    defaults={"method": "ridge"},  # docs/results/ratings.md
    # One report per client holds all training data of the default model, and it gets the whole budget.
    network={"method": "fedavg", "rounds": 1, "privacy.mechanism": "privunit"},
    paper={
        "method": "bgtplanner",
        "rounds": 20,
        "planner.inner": "fedadam",
        "training.lr": 0.5,
        "training.local-steps": 1,
        "algorithm.fedadam.server-lr": 0.05,
        "privacy.normalise": True,
        "privacy.accept-noise": True,
        "tasks.ratings.embedding-std": 0.3,
    },
    loss_is_error=lambda model: model == "paper",
    weighs_noise=lambda model: model == "default",  # slope and slope-noise
    simple={"rmse": "rmse_local_mean", "f1": "f1_all_liked"},
    comparison=Comparison(
        "raters", "own mean", {"own mean and biases": {"rmse": "rmse_biases"}}, frozenset({"own mean and biases"})
    ),
    records_per_example=1_000,  # an example is a rater, whose number of ratings is private
)


Shares = NDArray[np.floating[Any]]

LIKED = 0.5
"""Smallest rating, and smallest prediction, that counts as liked."""


def rating_metrics(predicted: Shares, truth: Shares) -> tuple[dict[str, float], dict[str, float]]:
    """Return RMSE, MAE, loss (squared error) and F1, and the weights that pool them over clients.

    The weighted mean over clients (of squares for RMSE) equals the metric of all ratings together. The weight of
    F1 = 2TP/(2TP + FP + FN) is its denominator. Metrics are absent without ratings, F1 is absent without a positive.

    Args:
        predicted: Predicted ratings, n.
        truth: True ratings, n.
    """
    if not len(truth):
        return {}, {}
    error = np.asarray(predicted, np.float64) - truth
    square = float(np.mean(error**2))
    metrics = {"rmse": square**0.5, "mae": float(np.mean(np.abs(error))), "loss": square}
    weights = dict.fromkeys(metrics, float(len(truth)))
    score, weight = f1(predicted, truth)
    return (metrics | {"f1": score}, weights | {"f1": weight}) if weight else (metrics, weights)


def f1(predicted: Shares, truth: Shares) -> tuple[float, float]:
    """Return F1 = 2TP/(2TP + FP + FN) of liked items and its denominator; (0, 0) without a positive."""
    predicted_liked, truly_liked = np.asarray(predicted) >= LIKED, np.asarray(truth) >= LIKED
    hits, weight = 2.0 * int((predicted_liked & truly_liked).sum()), float(predicted_liked.sum() + truly_liked.sum())
    return (hits / weight if weight else 0.0), weight
