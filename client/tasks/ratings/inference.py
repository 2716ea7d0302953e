"""Recommendations of unrated products by a finished model, on the client, from one person's ratings.

An exported network gives the same list without torch.
"""

from dataclasses import dataclass

import numpy as np

from client.tasks.lists import LEARNT, NO_TITLES, UNSEEN, ItemFilter, Titles, best_first, title_of
from client.tasks.ratings.baseline import own_mean
from client.tasks.ratings.data.raters import Rated, Rater, Ratings, SplitRater
from client.tasks.registry import Network
from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import ProductCatalogue

TIE = 1e-6
"""Weight of the model's rating where a baseline predicts equal ones."""

EMBEDDING = "items"
"""Parameter of the paper's model with a vector per product."""


@dataclass(frozen=True)
class Suggestion:
    """A recommended product; ratings in the units of the data."""

    product: str
    rating: float
    """Predicted rating."""
    own_mean: float
    """Baseline: the person's mean rating, shrunk to the prior by the number of ratings."""
    why: str
    """Reason, in one clause."""


def suggestions(
    config: RunConfig,
    products: ProductCatalogue,
    trained: Arrays,
    rater: Rater,
    top: int,
    chosen: ItemFilter = UNSEEN,
    titles: Titles = NO_TITLES,
    baseline: str = "",
) -> list[Suggestion]:
    """Return the `top` products with the highest predicted ratings, best first; ties by product.

    `baseline` names a baseline that predicts the ratings; products to which it gives the same are in the order of the model.
    Reasons name titles instead of ids.
    """
    from client.inference.model_choice import fit_client_only
    from client.tasks.ratings.learner import RatingsLearner

    learner = RatingsLearner(config.task_run(TASK, products), Ratings((rater,), products))
    empty = Rated(rater.items[:0], rater.ratings[:0])
    model, split = fit_client_only(config, learner, trained), SplitRater(rater, rated(rater, products), empty, empty)
    every = np.arange(len(products.items))
    shares = learner.predictor(model)(split, every)
    if baseline:
        shares = learner.predictors(trained)[baseline](split, every) + TIE * shares
    return list_products(shares, learner.options, products, model, rater, top, chosen, titles)


def rated(rater: Rater, products: ProductCatalogue) -> Rated:
    """Return a person's ratings as shares of the scale."""
    return Rated(rater.items, np.asarray(products.scaled(rater.ratings), np.float64))


def list_products(
    shares: Floats,
    options: RatingsOptions,
    products: ProductCatalogue,
    model: Arrays,
    rater: Rater,
    top: int,
    chosen: ItemFilter = UNSEEN,
    titles: Titles = NO_TITLES,
) -> list[Suggestion]:
    """Return the products with the highest shares of the scale, I, as `suggestions` does."""
    best = best_first(shares, chosen.allowed(len(shares), rater.items))[:top]
    mean = float(products.unscaled(np.array(own_mean(rated(rater, products), options))))
    predicted = products.unscaled(shares[best]).tolist()
    return [
        Suggestion(products.items[i], rating, mean, _reason(i, products, rater, model, titles))
        for i, rating in zip(best.tolist(), predicted, strict=True)
    ]


def _reason(product: int, products: ProductCatalogue, rater: Rater, model: Arrays, titles: Titles) -> str:
    """Return the reason of a product: the most similar one that the person likes.

    Only the paper's model has similarities.
    """
    liked = rater.items[rater.ratings >= rater.ratings.mean()] if len(rater.items) else rater.items
    liked = liked[liked != product]
    if EMBEDDING not in model or not len(liked):
        return LEARNT
    vectors = model[EMBEDDING] / np.maximum(np.linalg.norm(model[EMBEDDING], axis=1, keepdims=True), 1e-12)
    nearest = int(liked[int((vectors[liked] @ vectors[product]).argmax())])
    return f"like '{title_of(products.items[nearest], titles)}', which you rate highly"


def suggestions_by(
    network: Network, config: RunConfig, products: ProductCatalogue, statics: Arrays, rater: Rater, top: int
) -> list[Suggestion]:
    """Return the products that `suggestions` returns, by an exported network."""
    inputs = {"items": rater.items, "values": rated(rater, products).values}
    if config.model == "paper":
        del inputs["values"]  # its attention reads which products are rated
    shares = network(inputs).astype(np.float64)
    return list_products(shares, config.options_of(TASK), products, statics, rater, top, UNSEEN)
