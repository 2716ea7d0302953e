"""Ratings learner: ratings as tensors, objectives of both models, errors of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from client.tasks.learner import HasModule
from client.tasks.ratings.baseline import adjust_to_noise, normal_scores, normalize, own_mean, predict, report
from client.tasks.ratings.data.raters import Rated, Ratings, SplitRater, arrived, split_rater
from client.tasks.ratings.neighbours import NO_FACTORS, predict_hidden, statistics
from client.tasks.ratings.neighbours import predict as solved_ratings
from client.training.foresight import derive
from client.training.stacks import Tensors
from common.arrays import Arrays, Floats, Ints
from common.models import tensors
from common.tasks.ratings import neighbours
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.task import LIKED, TASK, f1, rating_metrics
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

if TYPE_CHECKING:
    from torch import Tensor

ROOT_EPSILON = 1e-12
"""Constant under the root of the paper's loss; keeps the gradient finite at zero error."""

CLOSED = "closed"
"""Batch tensor: the closed form's prediction of each rating, under which the network trains."""

HALF = 0.5
"""Output of a network that is a rest of zero."""

Codes = Ints


class RatingsLearner(HasModule):
    """Learner of the ratings task: a client's raters in one run; most clients have one.

    Evaluation uses all training ratings in every round, also with `arrival=online`. The baseline of the own mean is then that
    of the last round.

    Args:
        run: View of the run's configuration.
        dataset: Raters of the client; a rater without ratings reports zeros.
    """

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    table = "items"
    """Name of the paper's embedding table of products."""

    def __init__(self, run: TaskRun[RatingsOptions, ProductCatalogue], dataset: Ratings) -> None:
        self.options, self.products = run.options, run.vocabulary
        self.prediction_options = adjust_to_noise(self.options, run.privacy, run.rounds, len(self.products.items))
        self._rounds, self._paper = run.rounds, run.model == "paper"
        self.is_network = self._paper
        """False for item scores, by which `baseline.predict` predicts."""
        self._noised = run.privacy.unit != "none"
        super().__init__(TASK, run)
        self._baselines: dict[str, tuple[Metrics, Metrics]] = {}
        self.splits = tuple(split_rater(rater, self.products, self.options, run.seed) for rater in dataset.units)
        self.examples = len(self.splits)  # raters; the number of ratings is private
        longest = max((len(split.train) for split in self.splits), default=0)
        self.size = len(self.splits) * longest if self._paper else len(self.products.items)

    def batch(self, request: TrainRequest) -> Tensors:
        """Return the round's training data.

        For the paper's model: rated products, ratings and mask, U × M. For the default model: the report, of length I.
        """
        arrived_ratings = self.arrived_ratings(request.round)
        if self._paper:
            solved = request.statics if neighbours.is_solved(request.statics) else None
            return _pad(arrived_ratings) | (self._closed(solved, arrived_ratings) if solved else {})
        x = np.sum([report(train, len(self.products.items), self.options) for train in arrived_ratings], axis=0)
        return {"report": torch.from_numpy(normalize(x).astype(np.float32))}

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Return no step inputs: training steps are deterministic."""
        return {}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute the RMSE over the client's ratings (the paper's model), or −⟨scores, x⟩ (the default)."""
        if not self._paper:
            linear: Tensor = torch.func.functional_call(self.module, params, (batch["report"],))
            return linear
        index, mask = batch["index"], batch["mask"]
        ratings = torch.func.functional_call(self.module, params, (index, mask, index))
        ratings = ratings - HALF + batch[CLOSED] if CLOSED in batch else ratings
        squares = (mask * (ratings - batch["ratings"]).square()).sum()
        rmse: Tensor = (squares / mask.sum().clamp(min=1) + ROOT_EPSILON).sqrt()
        return rmse

    def _closed(self, solved: Arrays, raters: Sequence[Rated]) -> Tensors:
        """Return the closed form's prediction of each rating, U × M, without noise as if it were hidden."""
        predictor = self.predictor(solved)

        def predicted(train: Rated) -> Rated:
            if self._noised:
                return replace(train, values=predictor.closed(train, train.items))
            return replace(train, values=predict_hidden(solved, train, self.prediction_options))

        return {CLOSED: _pad([predicted(train) for train in raters])["ratings"]}

    def arrived_ratings(self, round_number: int) -> list[Rated]:
        """Return each rater's training ratings that have arrived by that round."""
        if self.options.arrival == "all":
            return [split.train for split in self.splits]
        return [s.train.first(arrived(len(s.train), round_number, self._rounds)) for s in self.splits]

    def own_items(self, round_number: int) -> Codes:
        """Return the products rated by that round by any rater of this client, ascending."""
        return np.unique(
            np.concatenate([np.zeros(0, np.int64), *(rater.items for rater in self.arrived_ratings(round_number))])
        )

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return errors over the held-out ratings, and the weights that pool them over clients."""
        return rating_metrics(_concatenate(self._guesses(model, statics, split)), self._truth(split))

    def questions(self, kind: str, statics: Arrays) -> Tensors:
        """Return the training ratings of each rater, and the products of its held-out ratings."""
        held_out = [split.held_out(kind) for split in self.splits] if self._paper else []
        if not any(map(len, held_out)):
            return {}
        return {**_pad([split.train for split in self.splits]), "queries": _pad(held_out)["index"]}

    def answer(self, params: Tensors, questions: Tensors) -> Tensor:
        """Return the network's ratings of the products, U × M."""
        inputs = tuple(questions[name] for name in ("index", "mask", "queries"))
        ratings: Tensor = torch.func.functional_call(self.module, params, inputs)
        return ratings

    def _guesses(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return the predicted held-out ratings of each rater."""
        predictor, asked = self.predictor({**model, **statics}), [r.held_out(split).items for r in self.splits]

        def guesses(output: Tensor) -> list[Floats]:
            rows = zip(self.splits, asked, output if len(output) else [None] * len(asked), strict=False)
            return [predictor(rater, items, rated) for rater, items, rated in rows]

        return derive(self, split, model, statics, guesses)

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return errors of the baselines: own mean, public prior mean, one half; F1 if all items are liked.

        The prior mean stands in for the mean of all clients' ratings, which is unknown.
        """
        if split not in self._baselines:
            self._baselines[split] = self._evaluate_baselines(split)
        _, biases = TASK.baselines
        if not (guess := self.predictors(statics).get(biases)) or not self._baselines[split][0]:
            return self._baselines[split]
        made = _concatenate([guess(rater, rater.held_out(split).items) for rater in self.splits])
        found = [rating_metrics(made, self._truth(split)), self._baselines[split]]
        renamed = [
            {TASK.baselines[biases][key]: each[key] for key in TASK.baselines[biases] if key in each}
            for each in found[0]
        ]
        return {**found[1][0], **renamed[0]}, {**found[1][1], **renamed[1]}

    def _evaluate_baselines(self, split: str) -> tuple[Metrics, Metrics]:
        truth = self._truth(split)
        if not len(truth):
            return {}, {}
        means = [np.full(len(s.held_out(split)), own_mean(s.train, self.options)) for s in self.splits]
        guesses = {"local_mean": _concatenate(means), "prior_mean": _constant(self.options.prior, truth)}
        guesses["half"] = _constant(LIKED, truth)
        metrics = {f"rmse_{name}": rating_metrics(guess, truth)[0]["rmse"] for name, guess in guesses.items()}
        liked, weight = f1(guesses["half"], truth)
        weights = {**dict.fromkeys(metrics, float(len(truth))), "f1_all_liked": weight}
        return {**metrics, "f1_all_liked": liked}, weights

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return the squared error of each held-out rating of each rater."""
        held_out, guesses = [rater.held_out(split) for rater in self.splits], self._guesses(model, statics, split)
        return [(guess - ratings.values) ** 2 for guess, ratings in zip(guesses, held_out, strict=True)]

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same by the baselines that the statics allow."""
        return {name: self._errors(split, guess) for name, guess in self.predictors(statics).items()}

    def predictors(self, statics: Arrays) -> dict[str, Callable[[SplitRater, Codes], Floats]]:
        """Return the function from a rater and products to ratings of each baseline, by its name."""
        mean, biases = TASK.baselines

        def by_biases(rater: SplitRater, items: Codes) -> Floats:
            return solved_ratings(statics, rater.train, items, self.prediction_options, NO_FACTORS)

        alone = {mean: lambda rater, items: np.full(len(items), own_mean(rater.train, self.options))}
        return {**alone, biases: by_biases} if neighbours.FACTORS in statics else alone

    def _errors(self, split: str, guess: Callable[[SplitRater, Codes], Floats]) -> list[Floats]:
        held_out = [(rater, rater.held_out(split)) for rater in self.splits]
        return [(guess(rater, ratings.items) - ratings.values) ** 2 for rater, ratings in held_out]

    def statistics(self, solved: Arrays) -> Arrays:
        """Return the sums over this client's raters of what the closed form needs next.

        Raises:
            WireError: What is solved is not of this vocabulary.
        """
        neighbours.check(solved, self.products, noised=self._noised)
        return statistics(solved, [split.train for split in self.splits], self.options)

    def predictor(self, model: Arrays) -> Predictor:
        """Return the model, or what is solved, as a function of a rater and products.

        It uses all training ratings.
        """
        return Predictor(model, self)

    def _truth(self, split: str) -> Floats:
        return _concatenate([rater.held_out(split).values for rater in self.splits])


class Predictor:
    """Predictor of ratings by a trained model.

    Args:
        model: Parameters; for the paper's model with the client's private ones, for the closed form what is solved.
        learner: Learner of the raters.
    """

    def __init__(self, model: Arrays, learner: RatingsLearner) -> None:
        self._learner, self._options = learner, learner.prediction_options
        self._solved = model if neighbours.FACTORS in model else None
        of_network = dict(learner.module.named_parameters()) if learner.is_network else ()
        self._params = tensors({name: model[name] for name in of_network if name in model})
        scores = model.get(neighbours.SCORES, model.get("scores"))
        self._scores = normal_scores(scores) if scores is not None else None

    def __call__(self, split: SplitRater, items: Codes, rated: Tensor | None = None) -> Floats:
        """Predict a rater's ratings of products, as shares of the scale; `rated` are those of the network."""
        has_closed = self._solved is not None or self._scores is not None
        closed = self.closed(split.train, items) if has_closed else np.full(len(items), HALF)
        if not self._params:
            return closed
        if rated is None:
            batch, queries = _pad([split.train]), torch.from_numpy(items).unsqueeze(0)
            with torch.no_grad():
                inputs = (batch["index"], batch["mask"], queries)
                rated = torch.func.functional_call(self._learner.module, self._params, inputs)[0]
        ratings = rated[: len(items)].double().numpy()
        return np.asarray(np.clip(ratings - HALF + closed, 0, 1) if has_closed else ratings)

    def closed(self, train: Rated, items: Codes) -> Floats:
        """Predict a rater's ratings by what is solved, or by item scores."""
        if self._solved is not None:
            return solved_ratings(self._solved, train, items, self._options)
        assert self._scores is not None  # a closed form with noise, or the default model
        return predict(self._scores, train, items, self._options)


def _pad(raters: Sequence[Rated]) -> Tensors:
    """Return products, ratings and mask, U × M each, M at least 1."""
    longest = max((len(train) for train in raters), default=0)
    shape = len(raters), max(longest, 1)
    index, ratings, mask = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for u, train in enumerate(raters):
        index[u, : len(train)], ratings[u, : len(train)], mask[u, : len(train)] = train.items, train.values, 1
    return {name: torch.from_numpy(a) for name, a in (("index", index), ("ratings", ratings), ("mask", mask))}


def _constant(share: float, truth: Floats) -> Floats:
    return np.full(len(truth), share)


def _concatenate(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *arrays])
