"""Protocol of learners whose gradient is zero in most rows of some tables."""

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from torch import Tensor

from client.stacked_tensors import Tensors
from common.arrays import Ints
from common.wire.messages import TrainRequest


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
