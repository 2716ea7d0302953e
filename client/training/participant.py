"""One client of a cohort: what a task gives the trainers, and everything its local training needs."""

import hashlib
from dataclasses import dataclass

import torch

from client.privacy.dp_sgd_noise import DpSgdNoise
from client.privacy.reservation import Reservation
from client.state import Store
from client.tasks.learner import Learner
from common.wire.messages import LOCAL, TrainRequest


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
