"""Participant: one client of a cohort with its data, state, request and random generator."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch

from client.privacy.budget import Reservation
from client.privacy.dp_sgd import DpSgdNoise
from client.privacy.transforms import JoinedSum
from client.state import Store
from client.tasks.learner import GatheredBatch, Learner, is_unstacked
from client.training.stacks import Tensors
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
        device: Device of its local steps.
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
    part: JoinedSum | None = None
    gathered: GatheredBatch | None = None
    device: str = "cpu"

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


TOGETHER = 32
"""Number of clients that train stacked; larger cohorts pad more and exceed the processor's cache."""

MAX_UNSTACKED = 16
"""Maximum number of clients that train one at a time by default."""

STEP_BYTES = 16 * 2**20
"""Bytes of the largest result of a stacked step.

Above it, a step takes up to twice the processor time, and memory in proportion.
"""

MemberT = TypeVar("MemberT")


@runtime_checkable
class HasWideRows(Protocol):
    """Learner whose step computes many numbers from each row, such as a score of each item."""

    row_numbers: int
    """Number of float32 numbers that the largest result of a step has for each row."""


def choose_cohort(clients: int) -> int:
    """Return the number of clients that train stacked by default."""
    return 1 if clients <= MAX_UNSTACKED else TOGETHER


def split_cohort(
    members: Sequence[MemberT], learner_of: Callable[[MemberT], Learner], together: int
) -> Iterator[list[MemberT]]:
    """Yield cohorts that train stacked, in the order of the members; the machine has no influence on them.

    Members come by the size of their data, ascending: a cohort is padded to its last one.
    """
    cohort: list[MemberT] = []
    for member in members:
        learner = learner_of(member)
        row_bytes = 4 * getattr(learner, "row_numbers", 0)  # `isinstance` of a protocol takes 15 µs
        is_full = len(cohort) == together or (len(cohort) + 1) * learner.size * row_bytes > STEP_BYTES
        if cohort and (is_full or is_unstacked(learner)):
            yield cohort
            cohort = []
        cohort.append(member)
    if cohort:
        yield cohort
