"""One client of a cohort: what a task gives the trainers, and everything its local training needs."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from client.privacy.dp_sgd_noise import DpSgdNoise
from client.privacy.reservation import Reservation
from client.stacked_tensors import Tensors
from client.state import Store
from common.config.run import Task
from common.wire.messages import LOCAL, TrainRequest


class Learner(Protocol):
    """What a task gives the trainers: a client's data as tensors and the objective on them."""

    task: Task

    examples: int
    """Records trained on."""

    size: int
    """Rows of one step, by which a simulation stacks like with like."""

    rows: int
    """Rows of a batch, one a record; 0 where records cannot be told apart in it."""

    shared: tuple[str, ...]
    """Tensors of a batch that are not one row a record."""

    def batch(self, request: TrainRequest) -> Tensors:
        """All training data, without a client dimension."""

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Dropout masks for `steps` steps, steps × …."""

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """L_k, a scalar; pure."""


@dataclass(frozen=True)
class Participant:
    """One client of a cohort, ready to train."""

    client: str
    run: str
    seed: int
    learner: Learner
    store: Store
    request: TrainRequest
    steps: int
    noise: DpSgdNoise | None = None
    """Noise of its local steps, under DP-SGD."""
    reservation: Reservation | None = None
    """Permission to release the update; None in runs without noise."""


def generator(member: Participant) -> torch.Generator:
    """The client's own source of randomness in that exchange: the same in a simulation as across machines."""
    request = member.request
    text = f"{member.seed}|{request.round}|{member.client}" + ("" if request.phase == LOCAL else f"|{request.phase}")
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1)
