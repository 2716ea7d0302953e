"""One round of local training of clients whose replies are summed; no reply outlives its cohort."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from client.stacked_tensors import Tensors, are_finite, row, to_arrays
from client.training.cohort import build_reply, descend_together
from client.training.cohort_state import save_newest
from client.training.failures import DivergedError
from client.training.participant import Participant
from common.arrays import Arrays, Floats
from common.errors import FedloomError
from common.methods.spec import MethodOptions
from common.reply_sums import BlockReply, ClientBlock, Folded
from common.wire.messages import TrainReply

IsDoubtful = Callable[[dict[str, Floats], Floats], Sequence[int]]
"""(`update` and `gradient` -> lengths, (K,); losses, (K,)) -> clients that send a single reply."""


@dataclass(frozen=True)
class FoldedCohort:
    """Replies of a cohort whose arrays are summed.

    Args:
        replies: Reply of each participant, or the error that it gets in place of one.
        lengths: `update` and `gradient` -> length of each reply, (K,).
        update: Δ_k, K × …, which the replies do not hold.
        gradient: s_k, K × …, which the replies do not hold.
        block: The clients in the sum, and the sum.
    """

    replies: list[TrainReply | FedloomError]
    lengths: dict[str, Floats]
    update: Tensors
    gradient: Tensors
    block: ClientBlock


def train_folded(
    options: MethodOptions,
    participants: Sequence[Participant],
    number: int,
    is_doubtful: IsDoubtful,
    *,
    with_all: bool = False,
) -> FoldedCohort:
    """Train a block of participants, sum their replies and store their client states in one version.

    Doubtful clients have an ordinary reply, and their state keeps what the server may take back.

    Args:
        options: Options of the method.
        participants: The block.
        number: Place of the block in its round.
        is_doubtful: Choice of the doubtful clients.
        with_all: True if every client with a state is in this round.
    """
    trained = descend_together(options, participants, with_all=with_all)
    own, losses = trained.result.personalized, trained.result.descent.loss.double().numpy()
    is_usable = are_finite(own) if own else [True] * len(participants)
    counted = [k for k, (a, b) in enumerate(zip(trained.is_finite, is_usable, strict=True)) if a and b]
    lengths = {kind: _lengths(t) for kind, t in (("update", trained.update), ("gradient", trained.gradient)) if t}
    alone = set(is_doubtful(lengths, losses)) & set(counted)
    save_newest(trained.trainer, trained.cohort, trained.result, trained.local.state, counted, sorted(alone))
    summed = [k for k in counted if k not in alone]
    weights = np.array([options.weight(p.learner.examples) if k in summed else 0.0 for k, p in enumerate(participants)])
    update, gradient = (to_arrays(_only(summed, t)) for t in (trained.update, trained.gradient))
    sums = Folded()
    sums.add(participants[0].steps, weights, update, gradient, with_magnitude=options.capabilities().needs_magnitude)
    block = ClientBlock(number, tuple(participants[k].client for k in summed), sums)

    def reply(k: int) -> TrainReply | FedloomError:
        p = participants[k]
        if k in alone:
            return build_reply(p, _own(trained.update, k), _own(trained.gradient, k), float(losses[k]))
        return BlockReply(
            round=p.request.round,
            update={},
            gradient={},
            loss=float(losses[k]),
            examples=p.learner.examples,
            steps=p.steps,
            block=block,
            lengths={kind: float(length[k]) for kind, length in lengths.items()},
        )

    replies = [reply(k) if k in counted else DivergedError() for k in range(len(participants))]
    return FoldedCohort(replies, lengths, trained.update, trained.gradient, block)


def _lengths(stacked: Tensors) -> Floats:
    squares = [torch.linalg.vector_norm(t.flatten(1), dim=1, dtype=torch.float64).square() for t in stacked.values()]
    lengths: Tensor = torch.stack(squares).sum(0).sqrt()
    return np.asarray(lengths.numpy(), np.float64)


def _only(clients: Sequence[int], stacked: Tensors) -> Tensors:
    """Return zeros for the other clients, whose products with weight 0 may be NaN."""
    total = len(next(iter(stacked.values()), ()))
    if len(clients) >= total:
        return stacked
    keep = torch.zeros(total, dtype=torch.bool)
    keep[list(clients)] = True
    return {n: torch.where(keep.view(-1, *[1] * (t.dim() - 1)), t, 0.0) for n, t in stacked.items()}


def _own(stacked: Tensors, k: int) -> Arrays:
    return to_arrays(row(stacked, k))
