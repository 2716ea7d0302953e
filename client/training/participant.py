"""Participant: one client of a cohort with its data, state, request and random generator."""

import hashlib
from dataclasses import dataclass

import torch

from client.privacy.dp_sgd_noise import DpSgdNoise
from client.privacy.reservation import Reservation
from client.secure.upload import SumPart
from client.stacked_tensors import Tensors
from client.state import Store
from client.tasks.gathered_rows import GatheredBatch
from client.tasks.learner import Learner
from common.wire.messages import LOCAL, TrainRequest

ADAPT = "adapt"
"""Phase of the steps in which a client adapts the shared model; no server requests it."""


@dataclass(frozen=True)
class Participant:
    """Client in a cohort, ready to train.

    Args:
        client: Name of the client.
        run: Name of the run.
        seed: Seed of the run.
        learner: Data of the client.
        store: Client state.
        request: Training request.
        steps: Number τ_k of local steps.
        noise: Noise of the local steps under DP-SGD; None otherwise.
        reservation: Permission to release the update; None in runs without noise.
        part: Part of the client in the round's secure sum; None under trust `local`.
        gathered: Batch on gathered rows; None if local steps need whole tables. `request` then has these rows only.
    """

    client: str
    run: str
    seed: int
    learner: Learner
    store: Store
    request: TrainRequest
    steps: int
    noise: DpSgdNoise | None = None
    reservation: Reservation | None = None
    part: SumPart | None = None
    gathered: GatheredBatch | None = None

    def batch(self) -> Tensors:
        """Return all training data of this round, without a client dimension."""
        return self.gathered.batch if self.gathered else self.learner.batch(self.request)


def build_generator(participant: Participant, use: str = "") -> torch.Generator:
    """Return the generator of a participant's step inputs in one exchange, or of another use.

    Its seed depends on the run's seed, the round, the client's name, the phase and the use. Simulations and separate machines
    therefore sample the same numbers.
    """
    request, phase = participant.request, participant.request.phase
    text = f"{participant.seed}|{request.round}|{participant.client}" + ("" if phase == LOCAL else f"|{phase}")
    text += f"|{use}" if use else ""
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1)
