"""Softmax and sums over each session's clicks, and TAGNN's target attention in bounded memory (algorithms.md §2.7).

Clicks of all sessions stand in one row, N of them, each with its owner: 1 for the first of B sessions, 0 for padding. Written
out, target attention holds N × V numbers several times over: with 40,000 candidates candidates come in chunks, and the way back
computes each chunk anew instead of keeping it.
"""

from typing import Any

import torch
from torch import Tensor

NUMBERS_AT_ONCE = 2**16
"""Clicks × candidates of one chunk: what stays in a processor's cache, also of twenty clients side by side."""


def target_scores(candidates: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Σ_i β_ti (x_i·e_t) with β_t = softmax_i(e_t·k_i) over a session's clicks; 0 without clicks. Once differentiable.

    Args:
        candidates: e_t, V × d.
        keys: k_i, N × d.
        values: x_i, N × d.
        owner: Session of each click, N.
        sessions: B.

    Returns:
        B × V.
    """
    scores: Tensor = _TargetScores.apply(candidates, keys, values, owner, sessions)  # type: ignore[no-untyped-call]  # as torch has it
    return scores


def softmax_by_session(scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Softmax over each session's clicks of N × C scores, 0 for padding."""
    powers = _powers(scores, owner, sessions)
    return powers / by_click(_floored(sum_by_session(powers, owner, sessions)), owner)


def sum_by_session(clicks: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Sums over each session's clicks, B × C from N × C, without padding."""
    return clicks.new_zeros(sessions + 1, clicks.shape[-1]).index_add(0, owner, clicks)[1:]


def by_click(table: Tensor, owner: Tensor) -> Tensor:
    """Each click's row of what sessions have, N × C from B × C; of padding, any row."""
    return table.gather(0, (owner - 1).clamp(min=0).unsqueeze(-1).expand(-1, table.shape[-1]))


class _TargetScores(torch.autograd.Function):
    """See `target_scores`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(candidates: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> Tensor:
        """The scores, B × V."""
        return torch.cat([_attend(e, keys, values, owner, sessions)[3] for e in _chunks(candidates, owner)], dim=-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the inputs only."""
        *tensors, ctx.sessions = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @torch.no_grad()  # without it `torch.func.grad` keeps every chunk for a second derivative
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """With p = x·e, s = Σβp and gradient g: ∂p = βg, ∂(e·k) = βg(p − s)."""
        candidates, keys, values, owner = ctx.saved_tensors
        d_candidates, d_keys, d_values = [], torch.zeros_like(keys), torch.zeros_like(values)
        chunks = _chunks(candidates, owner)
        for e, g in zip(chunks, torch.split(grads[0], [len(e) for e in chunks], dim=-1), strict=True):
            powers, total, p, s = _attend(e, keys, values, owner, ctx.sessions)
            d_p = powers * by_click(g / total, owner)
            d_q = d_p * (p - by_click(s, owner))
            d_candidates.append(d_p.T @ values + d_q.T @ keys)
            d_keys, d_values = d_keys + d_q @ e, d_values + d_p @ e
        return torch.cat(d_candidates), d_keys, d_values, None, None


def _attend(e: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> tuple[Tensor, ...]:
    """β·Z, N × C, Z, B × C, p = x_i·e_t, N × C, and Σ_i β p, B × C, of C candidates."""
    powers, p = _powers(keys @ e.T, owner, sessions), values @ e.T
    total = _floored(sum_by_session(powers, owner, sessions))
    return powers, total, p, sum_by_session(powers * p, owner, sessions) / total


def _powers(scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """exp(score − the session's largest), N × C; 0 for padding, whose largest is infinite."""
    places, width = owner.unsqueeze(-1).expand_as(scores), scores.shape[-1]
    lowest = torch.cat([scores.new_full((1, width), torch.inf), scores.new_full((sessions, width), -torch.inf)])
    return torch.exp(scores - lowest.scatter_reduce(0, places, scores.detach(), "amax").gather(0, places))


def _floored(total: Tensor) -> Tensor:
    """Of a session without clicks the least number there is, so that its scores are zero and not NaN."""
    return total.clamp(min=torch.finfo(total.dtype).tiny)


def _chunks(candidates: Tensor, owner: Tensor) -> tuple[Tensor, ...]:
    return torch.split(candidates, max(1, NUMBERS_AT_ONCE // max(1, owner.numel())))
