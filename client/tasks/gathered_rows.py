"""Rows of tables that a client's local steps read and change, with a batch that counts within them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from client.stacked_tensors import Tensors
from common.arrays import Ints
from common.wire.messages import TrainRequest


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
