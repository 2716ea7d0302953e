"""The ratings task on a client: its people's ratings as tensors, the two models' objectives, errors of predictions."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from client.stacked_tensors import Tensors
from client.tasks.learner import shell
from client.tasks.ratings.baseline import expecting, own_mean, predicted, report, standing, unit
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.split import Rated, SplitRater, arrived, split_rater
from common.arrays import Arrays
from common.models import tensors
from common.tasks.ratings.metrics import LIKED, f1, rating_metrics
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

TINY = 1e-12
"""Added under the root of the paper's loss, so that a client without ratings, or without error, has a gradient."""

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class RatingsLearner:
    """A client's people in one run; most clients have one.

    What is measured in a round is measured with all training ratings, also of a client whose ratings still arrive: the own
    mean is then that of the last round, a line that is hard to beat in the first.

    Args:
        run: The run.
        dataset: The client's raters; some may have rated nothing, and report nothing.
    """

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    table = "items"
    """The paper's embeddings of products."""

    def __init__(self, run: TaskRun[RatingsOptions, ProductCatalogue], dataset: Ratings) -> None:
        self.options, self.products = run.options, run.vocabulary
        self.expected = expecting(self.options, run.privacy, run.rounds, len(self.products.items))
        self._rounds, self._paper = run.rounds, run.model == "paper"
        self.module = shell(TASK, run)
        self._lines: dict[str, tuple[Metrics, Metrics]] = {}
        self.splits = tuple(split_rater(rater, self.products, self.options, run.seed) for rater in dataset.units)
        self.examples = len(self.splits)  # people, not ratings: how many those are is private
        longest = max((len(split.train) for split in self.splits), default=0)
        self.size = len(self.splits) * longest if self._paper else len(self.products.items)

    def batch(self, request: TrainRequest) -> Tensors:
        """The round's data: of the paper's model the rated products, ratings and mask, U × M; else the report, of length I."""
        there = self.there(request.round)
        if self._paper:
            return _padded(there)
        x = np.sum([report(train, len(self.products.items), self.options) for train in there], axis=0)
        return {"report": torch.from_numpy(unit(x).astype(np.float32))}

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Neither model draws anything while it trains."""
        return {}

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """RMSE over the client's own ratings (the paper's), or −⟨scores, x⟩."""
        if not self._paper:
            linear: Tensor = functional_call(self.module, params, (batch["report"],))
            return linear
        index, mask = batch["index"], batch["mask"]
        ratings = functional_call(self.module, params, (index, mask, index))
        squares = (mask * (ratings - batch["ratings"]).square()).sum()
        rmse: Tensor = (squares / mask.sum().clamp(min=1) + TINY).sqrt()
        return rmse

    def there(self, round_number: int) -> list[Rated]:
        """Each person's training ratings that have arrived by that round."""
        if self.options.arrival == "all":
            return [split.train for split in self.splits]
        return [s.train.first(arrived(len(s.train), round_number, self._rounds)) for s in self.splits]

    def own_items(self, round_number: int) -> Codes:
        """Products that somebody of this client rated by that round, ascending."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(one.items for one in self.there(round_number))]))

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Errors over the held-out ratings, and the weights under which clients' values pool."""
        ratings = self.predictor(model)
        guesses = [ratings(one, one.held_out(split).items) for one in self.splits]
        return rating_metrics(_joined(guesses), self._truth(split))

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Errors of the lines: each person's own mean, the public prior mean, "always one half", and F1 of "all liked".

        Nobody knows the mean of everybody's ratings; the prior, which the default model starts from, stands in for it.
        """
        if split not in self._lines:
            self._lines[split] = self._measured_lines(split)
        return self._lines[split]

    def _measured_lines(self, split: str) -> tuple[Metrics, Metrics]:
        truth = self._truth(split)
        if not len(truth):
            return {}, {}
        means = [np.full(len(s.held_out(split)), own_mean(s.train, self.options)) for s in self.splits]
        guesses = {"local_mean": _joined(means), "prior_mean": _always(self.options.prior, truth)}
        guesses["half"] = _always(LIKED, truth)
        metrics = {f"rmse_{line}": rating_metrics(guess, truth)[0]["rmse"] for line, guess in guesses.items()}
        liked, weight = f1(guesses["half"], truth)
        weights = {**dict.fromkeys(metrics, float(len(truth))), "f1_all_liked": weight}
        return {**metrics, "f1_all_liked": liked}, weights

    def predictor(self, model: Arrays) -> "Predictor":
        """What the model says of a person, given all that person's training ratings."""
        return Predictor(self.module, model, self)

    def _truth(self, split: str) -> Floats:
        return _joined([one.held_out(split).values for one in self.splits])


class Predictor:
    """A trained model, ready to be asked.

    Args:
        module: Its shell.
        model: Its parameters; of the paper's model with the client's own.
        learner: Whose people are asked about.
    """

    def __init__(self, module: nn.Module, model: Arrays, learner: RatingsLearner) -> None:
        self._module, self._params, self._options = module, tensors(model), learner.expected
        self._standing = standing(model["scores"]) if "scores" in model else None

    def __call__(self, split: SplitRater, items: Codes) -> Floats:
        """Predicted ratings of those products by that person, shares of the scale."""
        if self._standing is not None:
            return predicted(self._standing, split.train, items, self._options)
        batch = _padded([split.train])
        with torch.no_grad():
            asked = torch.from_numpy(items).unsqueeze(0)
            ratings = functional_call(self._module, self._params, (batch["index"], batch["mask"], asked))
        return np.asarray(ratings[0].double().numpy())


def _padded(people: Sequence[Rated]) -> Tensors:
    """Products, ratings and mask, U × M each, M at least 1."""
    most = max((len(train) for train in people), default=0)
    shape = len(people), max(most, 1)
    index, ratings, mask = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for u, train in enumerate(people):
        index[u, : len(train)], ratings[u, : len(train)], mask[u, : len(train)] = train.items, train.values, 1
    return {name: torch.from_numpy(a) for name, a in (("index", index), ("ratings", ratings), ("mask", mask))}


def _always(share: float, truth: Floats) -> Floats:
    return np.full(len(truth), share)


def _joined(parts: Sequence[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])
