"""From a finished model to the products somebody may like; on the client, from that person's own ratings."""

from dataclasses import dataclass

import numpy as np
from torch.func import grad_and_value

from client.stacked_tensors import row, stack
from client.tasks.ratings.baseline import own_mean
from client.tasks.ratings.data.raters import Rater, Ratings
from client.tasks.ratings.data.split import Rated, SplitRater
from client.tasks.ratings.learner import RatingsLearner
from client.trainers.gradient_descent import descend
from client.trainers.optimizers import build_step, fresh_moments
from common.arrays import Arrays
from common.config.run import RunConfig
from common.models import tensors
from common.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.wire.messages import TrainRequest


@dataclass(frozen=True)
class Suggestion:
    """A product to try; ratings in the data's own units."""

    product: str
    rating: float
    """Predicted."""
    own_mean: float
    """The line to compare with: what this person gives on average, drawn to the prior where there are few ratings."""


def suggestions(
    config: RunConfig, products: ProductCatalogue, trained: Arrays, rater: Rater, top: int
) -> list[Suggestion]:
    """The `top` products that the person has not rated with the highest predicted ratings, best first."""
    learner = RatingsLearner(config.task_run(TASK, products), Ratings((rater,), products))
    nothing = Rated(rater.items[:0], rater.ratings[:0])
    known = Rated(rater.items, np.asarray(products.scaled(rater.ratings), np.float64))
    every = np.arange(len(products.items))
    shares = learner.predictor(own_model(config, learner, trained))(SplitRater(rater, known, nothing, nothing), every)
    new = np.setdiff1d(every, rater.items)
    best = new[np.argsort(-shares[new], kind="stable")][:top]
    mean = float(products.unscaled(np.array(own_mean(known, learner.options))))
    predicted = products.unscaled(shares[best]).tolist()
    return [Suggestion(products.items[i], rating, mean) for i, rating in zip(best, predicted, strict=True)]


def own_model(config: RunConfig, learner: RatingsLearner, trained: Arrays) -> Arrays:
    """The run's model with this person's own parameters, made anew: as many steps as in the run, all else at rest."""
    own = {name for name in trained if TASK.is_client_only(name)}
    if not own:
        return trained
    start, rest = stack([tensors(trained)]), set(trained) - own
    descent = descend(
        grad_and_value(learner.loss),
        start,
        batch=stack([learner.batch(TrainRequest(config.rounds, "", trained))]),
        noise={},
        steps=config.rounds * config.method_options.local_steps,
        step=build_step(config.method_options),
        moments=fresh_moments(config.method_options, start),
        clip_norm=config.method_options.clip_norm,
        frozen=lambda t: rest,
    )
    return {**trained, **{name: row(descent.params, 0)[name].numpy() for name in own}}
