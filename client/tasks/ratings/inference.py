"""Recommendations of unrated products by a finished model, on the client, from one person's ratings."""

from dataclasses import dataclass

import numpy as np

from client.inference.choose_model import fit_client_only
from client.tasks.ratings.baseline import own_mean
from client.tasks.ratings.data.raters import Rater, Ratings
from client.tasks.ratings.data.split import Rated, SplitRater
from client.tasks.ratings.learner import RatingsLearner
from common.arrays import Arrays
from common.config.run import RunConfig
from common.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import ProductCatalogue


@dataclass(frozen=True)
class Suggestion:
    """A recommended product; ratings in the units of the data."""

    product: str
    rating: float
    """Predicted rating."""
    own_mean: float
    """Baseline: the person's mean rating, shrunk to the prior by the number of ratings."""


def suggestions(
    config: RunConfig, products: ProductCatalogue, trained: Arrays, rater: Rater, top: int
) -> list[Suggestion]:
    """Return the `top` unrated products with the highest predicted ratings, best first."""
    learner = RatingsLearner(config.task_run(TASK, products), Ratings((rater,), products))
    empty = Rated(rater.items[:0], rater.ratings[:0])
    rated = Rated(rater.items, np.asarray(products.scaled(rater.ratings), np.float64))
    every = np.arange(len(products.items))
    model = fit_client_only(config, learner, trained)
    shares = learner.predictor(model)(SplitRater(rater, rated, empty, empty), every)
    new = np.setdiff1d(every, rater.items)
    best = new[np.argsort(-shares[new], kind="stable")][:top]
    mean = float(products.unscaled(np.array(own_mean(rated, learner.options))))
    predicted = products.unscaled(shares[best]).tolist()
    return [Suggestion(products.items[i], rating, mean) for i, rating in zip(best, predicted, strict=True)]
