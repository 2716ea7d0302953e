"""Learner protocols: client data as tensors, training objective, evaluation metrics."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from client.stacked_tensors import Tensors
from common.arrays import Arrays
from common.models import build_model, tensors
from common.tasks.spec import OptionsT, TaskRun, TaskSpec, VocabularyT
from common.wire.messages import Metrics, TrainRequest


class Learner(Protocol):
    """A client's data in one run, as trainers and evaluation need them."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def module(self) -> nn.Module:
        """The task's model with its initial parameters."""

    @property
    def examples(self) -> int:
        """Number of training records."""

    @property
    def size(self) -> int:
        """Rows of one step; a simulation stacks clients of like size."""

    @property
    def rows(self) -> int:
        """Rows of a batch, one per record; 0 if records cannot be separated in it."""

    @property
    def shared(self) -> tuple[str, ...]:
        """Tensors of a batch that are not one row per record."""

    def batch(self, request: TrainRequest) -> Tensors:
        """Return all training data, without a client dimension."""

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample the random inputs of `steps` local steps; each tensor is steps × …."""

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """Return L_k, a scalar; pure."""

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return means of every metric over the held-out records of `split`, and the number of records of each."""


@runtime_checkable
class HasBaselines(Protocol):
    """A learner that evaluates untrained baselines."""

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics of the baselines over the held-out records, and the number of records of each."""


@runtime_checkable
class HasProperty(Protocol):
    """A learner that infers an STL property of its data."""

    def property(self) -> Arrays:
        """Return the parameters of the client's property."""

    def violation(self, model: Arrays) -> float:
        """Return L_p, the violation of the client's property by the model's outputs."""


@runtime_checkable
class SharesWindows(Protocol):
    """A learner that can send training records in plaintext."""

    def windows(self, windows: int) -> Arrays:
        """Return at most that many training records."""


@runtime_checkable
class HasCounts(Protocol):
    """A learner that has statistics to sum over clients."""

    def counts(self) -> Arrays:
        """Return this client's statistics."""


@runtime_checkable
class PrivatizesCounts(Protocol):
    """A learner that can add noise to its counts."""

    def private_counts(self, noise: float, rng: np.random.Generator) -> Arrays:
        """Return counts to which one record adds a vector of L2 norm at most 1, with N(0, noise²) on each."""


@runtime_checkable
class ExcludesOwnCounts(Protocol):
    """A learner that can train without its own part of the summed statistics."""

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """Return the sums without the statistics it sent; `sent` is empty if none were sent or stored."""


@runtime_checkable
class HasItemRows(Protocol):
    """A learner with a model table of one row per item."""

    table: str
    """Name of the table."""

    def own_items(self, round_number: int) -> NDArray[np.int64]:
        """Return the rows of the items in its data by that round, ascending."""


@lru_cache(maxsize=2)
def shell(spec: TaskSpec[OptionsT, VocabularyT], run: TaskRun[OptionsT, VocabularyT]) -> nn.Module:
    """Return the model shared by all clients of a process; parameters are arguments. The vocabulary must be hashable."""
    return build_model(spec, run)


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
