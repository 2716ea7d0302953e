"""Training of so many simulated clients that their replies are summed, block by block."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from flwr.app import Message

from client.training.folded_cohort import train_folded
from common.arrays import Floats
from common.config.run import RunConfig
from common.wire.messages import LOCAL
from deploy.simulated_cohort import Job, answer_cohort
from server.aggregation.lengths import Lengths, allowances, typical
from server.evaluation import MAX_PLAUSIBLE

FOLDED_BYTES = 192 * 2**20
"""Bytes of a round's replies above which they are summed.

Below, the server has single replies. It can then find the outliers of a step that ruined the model, and clients keep what a
repeated round needs.
"""

BLOCK_BYTES, MIN_BLOCK, MAX_BLOCK = 32 * 2**20, 4, 256
"""Bytes of a block: two models a client, and limits of its number of clients."""

DOUBT = 0.5
"""Share of the bound on lengths from which on the server judges a single reply.

The median of the round, to which the bound refers, is not there yet.
"""


class Population:
    """Training in blocks of clients with data of similar size.

    Args:
        together: Number of clients of a block; 0 chooses by the size of the model.
        reference: Typical lengths of the last round, replaced by those of each round.
    """

    def __init__(self, together: int, reference: Lengths) -> None:
        self._together, self._reference = together, reference

    def trains(self, jobs: Sequence[Job]) -> bool:
        """Return True if these clients' replies are summed."""
        if not jobs or len(jobs) * _reply_bytes(jobs[0]) <= FOLDED_BYTES or _config(jobs[0]).task_options.gathers_rows:
            return False
        config, phase = _config(jobs[0]), jobs[0].participant.request.phase
        fits = config.capabilities.sum_only and config.federation.robust == "none" and phase == LOCAL
        return fits and all(job.session.passes_unchanged(job.participant) for job in jobs)

    def train(self, jobs: Sequence[Job]) -> list[Message]:
        """Train all clients and return their replies; most of them hold no arrays."""
        config, size = _config(jobs[0]), self._together or _choose_block(jobs[0])
        jobs = sorted(jobs, key=lambda job: (job.participant.learner.size, job.participant.client))
        weights = {j.participant.client: config.method_options.weight(j.participant.learner.examples) for j in jobs}
        allowed, lengths = allowances(weights), list[Lengths]()
        replies: list[Message] = []
        for number, first in enumerate(range(0, len(jobs), size)):
            block = jobs[first : first + size]
            limits = config.federation.norm_bound * np.array([allowed[job.participant.client] for job in block])
            judge = partial(find_doubtful, self._reference, limits, lengths)
            trained = train_folded(config.method_options, [job.participant for job in block], number, judge)
            replies += answer_cohort(config, block, trained)
        self._reference.clear()
        self._reference.update(typical(lengths))
        return replies


def find_doubtful(
    reference: Lengths, limits: Floats, seen: list[Lengths], lengths: dict[str, Floats], losses: Floats
) -> list[int]:
    """Return the clients of a block whose reply the server may leave out; add all lengths to `seen`.

    Args:
        reference: Typical lengths of the last round; a kind without one is compared within the block.
        limits: Bound on each client's length, as a multiple of the typical one; 0: none.
        seen: Lengths of the round so far.
        lengths: Kind -> length of each client's reply, (K,).
        losses: Loss of each client, (K,).
    """
    rows = [dict(zip(lengths, map(float, row), strict=True)) for row in zip(*lengths.values(), strict=True)]
    middle = {**typical(rows), **reference}
    seen += rows
    trusted = np.abs(losses) <= MAX_PLAUSIBLE
    for kind, length in lengths.items():
        most = np.where(limits > 0, DOUBT * limits * middle.get(kind, 0.0), math.inf)
        trusted &= np.isfinite(length) & (length <= most)
    return np.flatnonzero(~trusted).tolist()


def _config(job: Job) -> RunConfig:
    return job.session.config(job.participant.request.enrolment)


def _model_bytes(job: Job) -> int:
    return sum(a.nbytes for a in job.participant.request.model.values())


def _reply_bytes(job: Job) -> int:
    return _model_bytes(job) * (2 if _config(job).capabilities.needs_gradient else 1)


def _choose_block(job: Job) -> int:
    """Return the power of two nearest to a fixed number of bytes; the machine has no influence on it."""
    clients = BLOCK_BYTES / (8 * _model_bytes(job))
    return int(min(max(2 ** round(math.log2(clients)), MIN_BLOCK), MAX_BLOCK))
