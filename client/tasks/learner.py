"""What a task gives a client: its data as tensors, the objective on them, and what they say of a model."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from client.training.participant import Learner
from common.arrays import Arrays
from common.config.run import RunConfig
from common.models import build_model, tensors
from common.tasks.vocabularies import Names
from common.wire.messages import Metrics, TrainRequest


class TaskLearner(Learner, Protocol):
    """A client's data in one run."""

    module: nn.Module
    """The task's model at its first parameters."""

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Means of every metric over the held-out records of `split`, and how many records each is the mean of."""

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """What holds of the held-out records whatever the model: errors of the task's lines. Empty where metrics say it."""

    def violation(self, model: Arrays) -> float:
        """L_p: how far the model's outputs are from obeying the client's property."""

    def property(self) -> Arrays:
        """Parameters of the client's property; empty where the task infers none."""

    def windows(self, windows: int) -> Arrays:
        """At most so many training records in clear, for runs that take them; empty where the task hands nothing over."""

    def counts(self) -> Arrays:
        """What this client adds to the sums that a model's offset is made of."""


@runtime_checkable
class PrivatizesCounts(Protocol):
    """A learner that can noise its counts."""

    def private_counts(self, noise: float, rng: np.random.Generator) -> Arrays:
        """Its counts, to which one record adds a vector of L2 norm 1 at most, with N(0, noise²) on each."""


@runtime_checkable
class ExcludesOwnCounts(Protocol):
    """A learner that can do without its own part of the sums."""

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """The sums without what it sent itself, which is empty if nothing did or is known of it."""


@runtime_checkable
class HasItemRows(Protocol):
    """A learner of whose model one table has a row for each item, of which it has data of some."""

    table: str
    """The table's name."""

    def own_items(self, round_number: int) -> NDArray[np.int64]:
        """Rows of the items that its data name by that round, ascending."""


class Merged:
    """The part of a task whose batches do not tell records apart."""

    rows = 0
    shared: tuple[str, ...] = ()


class Unruled:
    """The part of a task that infers no property and whose lines are measured elsewhere."""

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Nothing to add."""
        return {}, {}

    def violation(self, model: Arrays) -> float:
        """Nothing can be violated."""
        return 0.0

    def property(self) -> Arrays:
        """None."""
        return {}

    def windows(self, windows: int) -> Arrays:
        """None."""
        return {}


@lru_cache(maxsize=2)
def shell(config: RunConfig, names: Names) -> nn.Module:
    """Return the model shared by all clients of a process; parameters are arguments. The vocabulary must be hashable."""
    return build_model(config, names)


def training_loss(learner: Learner, model: Arrays, statics: Arrays) -> float:
    """L_k of a model over the training data; where a step draws its records, the mean over some draws, always the same."""
    draws, request = 8, TrainRequest(0, "", model, statics=statics)
    params, batch = tensors(model), learner.batch(request)
    noise = learner.step_inputs(draws, torch.Generator().manual_seed(0))
    with torch.no_grad():
        losses = [learner.loss(params, batch, {n: masks[t] for n, masks in noise.items()}) for t in range(draws)]
    return float(torch.stack(losses).mean())


def means(rows: list[Metrics]) -> tuple[Metrics, Metrics]:
    """The mean of every metric over the rows that have it, and their number."""
    values = {key: [row[key] for row in rows if key in row] for key in sorted({key for row in rows for key in row})}
    return {k: float(np.mean(v)) for k, v in values.items()}, {k: float(len(v)) for k, v in values.items()}


def means_over_windows(rows: Sequence[Metrics]) -> tuple[Metrics, Metrics]:
    """Means over the windows of the rows that have the number, and how many windows they are the mean of."""
    means: Metrics = {}
    windows: Metrics = {}
    for name in dict.fromkeys(name for row in rows for name in row if name != "windows"):
        told = [(row[name], row["windows"]) for row in rows if not np.isnan(row.get(name, np.nan))]
        if told:
            means[name] = float(np.average([value for value, _ in told], weights=[count for _, count in told]))
            windows[name] = sum(count for _, count in told)
    return means, windows
