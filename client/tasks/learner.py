"""Learner protocols: client data as tensors, training objective, evaluation, abilities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from threading import get_ident
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import torch

from client.training.stacks import Tensors
from common.arrays import Arrays, Floats, Ints
from common.models import build_model
from common.tasks.networks import NETWORKS, NetworkSpec
from common.tasks.options import VARIANTS
from common.tasks.spec import OptionsT, TaskRun, TaskSpec, VocabularyT
from common.wire.messages import Metrics, TrainRequest

if TYPE_CHECKING:
    from torch import Tensor, nn


class Learner(Protocol):
    """Data and objective of one client in one run, for trainers and evaluation."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def module(self) -> nn.Module:
        """Model of the task with its initial parameters."""

    @property
    def examples(self) -> int:
        """Number of training records."""

    @property
    def size(self) -> int:
        """Number of rows of one step; a simulation stacks clients of similar size."""

    @property
    def rows(self) -> int:
        """Number of rows of a batch, one per record; 0 if the batch does not separate records."""

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of batch tensors that do not have one row per record."""

    def batch(self, request: TrainRequest) -> Tensors:
        """Return all training data, without a client dimension."""

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample the random inputs of `steps` local steps; each tensor is steps × …."""

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Return the loss L_k, a scalar; a pure function. `inputs` are the step inputs of one step."""

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over the held-out records of `split`, and its number of records."""


@runtime_checkable
class HasBaselines(Protocol):
    """Learner that evaluates untrained baselines."""

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics of the baselines over the held-out records, and the number of records of each."""


@runtime_checkable
class ComparesUnits(Protocol):
    """Learner that evaluates each held-out record of each unit of data by the task's objective.

    The metric of a unit is the mean over its records; the root of the mean if it is a root mean square.
    """

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> Sequence[Floats]:
        """Return the values of each unit's held-out records, in the order of the data."""

    def baseline_values(self, statics: Arrays, split: str) -> Mapping[str, Sequence[Floats]]:
        """Return the same by each baseline of `TaskSpec.baselines` that this run has, by its name."""


PROPERTY = "property"
"""Kind of the questions whose answers `HasProperty.violation` compares with a property."""


@runtime_checkable
class AnswersTogether(Protocol):
    """Learner whose evaluation asks a network; it answers for several clients stacked."""

    def questions(self, kind: str, statics: Arrays) -> Tensors:
        """Return the network's inputs, whose first dimension is rows; empty without any.

        `kind` is a split of held-out data, or `PROPERTY`.
        """

    def answer(self, params: Tensors, questions: Tensors) -> Tensor:
        """Return the network's output of each row, padded as the questions are; a pure function."""


@runtime_checkable
class HasRecurrentNetwork(Protocol):
    """Learner whose loss is differentiated for each client by itself.

    A sum over clients would add the gradients of time steps in another order, and takes longer for stacked clients.
    """

    recurrent: bool
    """True."""


StackedLoss = Callable[[Tensors, Tensors], "Tensor"]
"""(parameters, inputs of one step), all K × … -> L_k of K clients, (K,)."""


@runtime_checkable
class FastLoss(Protocol):
    """Learner whose `loss` of stacked clients has parts that no step changes, which are computed once."""

    def stacked_loss(self, params: Tensors, batch: Tensors) -> StackedLoss:
        """Return `loss` of K clients, equal up to rounding. Only shapes of parameters count; batch is K × …."""


@runtime_checkable
class HasProperty(Protocol):
    """Learner that infers an STL property of its data."""

    def property(self) -> Arrays:
        """Return the parameters of the client's property."""

    def violation(self, model: Arrays) -> float:
        """Return L_p, the violation of the client's property by the model's outputs."""


@runtime_checkable
class DoubtsRun(Protocol):
    """Learner that can compare what a run requires of forecasts with its own data."""

    def doubt(self) -> str:
        """Return a remark for the owner if the data mostly violate what the run requires; else an empty text."""


@runtime_checkable
class HasStatistics(Protocol):
    """Learner with statistics for the task's closed form."""

    def statistics(self, solved: Arrays) -> Arrays:
        """Return this client's statistics for the next sum, in the form of `ClosedForm.template`."""


@runtime_checkable
class HasItemRows(Protocol):
    """Learner of a model with a table of one row per item."""

    table: str
    """Name of the table."""

    def own_items(self, round_number: int) -> Ints:
        """Return the rows of the items in this client's data by that round, ascending."""


def is_unstacked(learner: object) -> bool:
    """Return True if a client of this learner trains alone, without `vmap`: with a package's network."""
    return bool(getattr(learner, "unstacked", False))


class HasModule:
    """Learner with the task's module; that of a closed form is built at its first use."""

    def __init__(self, spec: TaskSpec[OptionsT, VocabularyT], run: TaskRun[OptionsT, VocabularyT]) -> None:
        self.unstacked = run.model not in VARIANTS
        self._build = partial(shell, spec, run)
        if not run.method.capabilities().closed_form:
            self.module = self._build()

    @cached_property
    def module(self) -> nn.Module:
        """Model of the task with its initial parameters."""
        return self._build()


def shell(spec: TaskSpec[OptionsT, VocabularyT], run: TaskRun[OptionsT, VocabularyT]) -> nn.Module:
    """Return the module shared by all clients of a thread; the vocabulary must be hashable."""
    return _shell(spec, run, get_ident(), None if run.model in VARIANTS else NETWORKS[run.model])


@lru_cache(maxsize=4)
def _shell(
    spec: TaskSpec[OptionsT, VocabularyT], run: TaskRun[OptionsT, VocabularyT], thread: int, network: NetworkSpec | None
) -> nn.Module:
    return build_model(spec, run)


def means(rows: list[Metrics]) -> tuple[Metrics, Metrics]:
    """Return the mean of each metric over the rows that have it, and their number."""
    values = {key: [row[key] for row in rows if key in row] for key in sorted({key for row in rows for key in row})}
    return {k: sum(v) / len(v) for k, v in values.items()}, {k: float(len(v)) for k, v in values.items()}


def means_over_windows(rows: Sequence[Metrics]) -> tuple[Metrics, Metrics]:
    """Return each metric's mean, weighted by `windows`, and its number of windows; NaN is left out."""
    means: Metrics = {}
    windows: Metrics = {}
    for name in dict.fromkeys(name for row in rows for name in row if name != "windows"):
        terms = [(row[name], row["windows"]) for row in rows if not np.isnan(row.get(name, np.nan))]
        if terms:
            means[name] = float(np.average([value for value, _ in terms], weights=[count for _, count in terms]))
            windows[name] = sum(count for _, count in terms)
    return means, windows


@dataclass(frozen=True)
class GatheredBatch:
    """Training data of one round whose local steps touch some rows of tables only.

    Args:
        rows: Table -> ids of its gathered rows, ascending.
        batch: Training data; row ids count within the gathered rows.
    """

    rows: Mapping[str, Ints]
    batch: Tensors


@runtime_checkable
class GathersRows(Protocol):
    """Learner whose local steps may work on gathered rows."""

    def gather(self, request: TrainRequest, generator: torch.Generator) -> GatheredBatch | None:
        """Return the gathered batch of a round; None if local steps need whole tables."""


@runtime_checkable
class TouchesRows(Protocol):
    """Learner that can compute its loss on some rows of its tables."""

    @property
    def tables(self) -> Collection[str]:
        """Names of the tables, which have the same rows."""

    @property
    def touched(self) -> Ints:
        """Ids of the rows that its loss reads, ascending."""

    def batch_on(self, request: TrainRequest, rows: Tensor) -> Tensors:
        """Return all training data as `Learner.batch` does, with ids of rows that count within `rows`.

        `rows` begins with `touched`.
        """


StepTargets = Callable[[Tensors, Tensors, Tensors], Tensors]
"""(parameters, batch, step inputs) of one client -> further inputs of the step."""


@runtime_checkable
class HasStepTargets(Protocol):
    """Learner whose loss compares outputs with constants that depend on the parameters of the step."""

    def step_targets(self, request: TrainRequest) -> StepTargets | None:
        """Return the function that computes the constants; None without any."""


def targets_of(learner: object, request: TrainRequest) -> StepTargets | None:
    """Return the function that computes a learner's constants; None without any."""
    return learner.step_targets(request) if isinstance(learner, HasStepTargets) else None
