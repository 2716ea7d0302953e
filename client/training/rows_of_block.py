"""Gradients of stacked clients on the rows of tables that their data touch."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from client.own_rows import OwnRows
from client.stacked_tensors import Tensors, stack
from client.tasks.touched_rows import TouchesRows
from client.trainers.gradient_descent import GradientAndLoss
from client.training.participant import Participant


def stack_on_rows(
    participants: Sequence[Participant], params: Tensors, plain: GradientAndLoss, own: OwnRows | None = None
) -> tuple[Tensors, GradientAndLoss]:
    """Return the clients' stacked data, and their gradient function on the rows that they touch.

    Whole tables remain if a client trains alone, has noise in its steps, or its learner does not name rows.

    Args:
        participants: K clients of one task.
        params: Parameters, K × ….
        plain: Gradient function on whole tables.
        own: Rows of short tables in the parameters; None if they are whole.
    """
    learners = _find_learners(participants)
    if not learners:
        return stack([p.batch() for p in participants]), plain
    tables = frozenset(learners[0].tables)
    rows = own.ids if own else _find_rows(learners, params[next(iter(tables))].shape[1])
    batch = stack(
        [each.batch_on(p.request, rows[k]) for k, (each, p) in enumerate(zip(learners, participants, strict=True))]
    )
    if own:
        return batch, _on_short_tables(plain, own)
    place = torch.arange(len(rows)).unsqueeze(1)

    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        gathered = {n: p[place, rows] if n in tables else p for n, p in params.items()}
        gradient, loss = plain(gathered, batch, inputs)
        for table in tables:
            whole = torch.zeros_like(params[table])
            whole[place, rows] = gradient[table]
            gradient[table] = whole
        return gradient, loss

    return batch, gradient_and_loss


def find_own_rows(participants: Sequence[Participant]) -> OwnRows | None:
    """Return the rows of their tables that stacked clients touch; None if that makes no table shorter."""
    learners = _find_learners(participants)
    if not learners:
        return None
    tables = frozenset(learners[0].tables)
    total = len(participants[0].request.model[next(iter(tables))])
    ids = _find_rows(learners, total)
    is_shorter = ids.numel() + total < len(learners) * total
    return OwnRows(tables, ids, total) if is_shorter else None


def _find_learners(participants: Sequence[Participant]) -> list[TouchesRows]:
    """Return the learners of clients that train on touched rows; empty if they train on whole tables."""
    first = participants[0]
    if len(participants) == 1 or first.noise is not None or not isinstance(first.learner, TouchesRows):
        return []
    return [cast(TouchesRows, p.learner) for p in participants]


def _on_short_tables(plain: GradientAndLoss, own: OwnRows) -> GradientAndLoss:
    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        gradient, loss = plain(own.take(params), batch, inputs)
        return own.fill(gradient, params), loss

    return gradient_and_loss


def _find_rows(learners: Sequence[TouchesRows], total: int) -> Tensor:
    """Return ids of rows, K × T: those that a client touches, ascending, then others."""
    is_touched = np.zeros((len(learners), total), bool)
    for k, learner in enumerate(learners):
        is_touched[k, learner.touched] = True
    most = int(is_touched.sum(axis=1).max())
    return torch.from_numpy(np.argsort(~is_touched, axis=1, kind="stable")[:, :most].copy())
