"""What a task gives a client: its data as tensors, the objective on them, and what they say of a model."""

from typing import Protocol

import numpy as np
from torch import nn

from client.cohort import Learner
from common.arrays import Arrays
from common.wire.messages import Metrics


class TaskLearner(Learner, Protocol):
    """A client's data in one run."""

    module: nn.Module
    """The task's model at its first parameters."""

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Means of every metric over the held-out records of `split`, and how many records each is the mean of."""

    def counts(self) -> Arrays:
        """What this client adds to the sums that a model's offset is made of."""


def means(rows: list[Metrics]) -> tuple[Metrics, Metrics]:
    """The mean of every metric over the rows that have it, and their number."""
    values = {key: [row[key] for row in rows if key in row] for key in sorted({key for row in rows for key in row})}
    return {k: float(np.mean(v)) for k, v in values.items()}, {k: float(len(v)) for k, v in values.items()}
