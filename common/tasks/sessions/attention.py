"""Sums over each session's clicks and TAGNN's target attention in bounded memory (algorithms.md §2.7).

The N clicks of all B sessions form one row. The owner of a click is its session, counted from 1; the owner of padding is 0.
Plain target attention stores several N × V arrays. Here candidates are processed in chunks, and the backward pass computes
each chunk again.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK_SCORES = 2**16
"""Clicks × candidates of one chunk; fits a processor's cache, also for twenty stacked clients."""


def target_scores(candidates: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Compute Σ_i β_ti (x_i·e_t) with β_t = softmax_i(e_t·k_i) over a session's clicks.

    The score is 0 for a session without clicks. The function is differentiable once.

    Args:
        candidates: Embeddings e_t, V × d.
        keys: Keys k_i, N × d.
        values: Values x_i, N × d.
        owner: Session of each click, N.
        sessions: Number B of sessions.

    Returns:
        Scores, B × V.
    """
    if torch.compiler.is_exporting():  # graphs for inference have neither chunks nor autograd functions
        return _attend(candidates, keys, values, owner, sessions)[3]
    scores: Tensor = _TargetScores.apply(candidates, keys, values, owner, sessions)  # type: ignore[no-untyped-call]  # as torch has it
    return scores


def softmax_by_session(scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Compute the softmax of N × C scores over each session's clicks; 0 for padding."""
    powers = _powers(scores, owner, sessions)
    return powers / gather_by_click(_floor(sum_by_session(powers, owner, sessions)), owner)


def sum_by_session(clicks: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Sum N × C values over each session's clicks, without padding: B × C."""
    return clicks.new_zeros(sessions + 1, clicks.shape[-1]).index_add(0, owner, clicks)[1:]


def gather_by_click(table: Tensor, owner: Tensor) -> Tensor:
    """Return the session's row for each click: N × C from B × C; any row for padding."""
    return table.gather(0, (owner - 1).clamp(min=0).unsqueeze(-1).expand(-1, table.shape[-1]))


class _TargetScores(torch.autograd.Function):
    """Autograd function of `target_scores`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(candidates: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> Tensor:
        """Compute the scores, B × V."""
        return torch.cat([_attend(e, keys, values, owner, sessions)[3] for e in _chunks(candidates, owner)], dim=-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Store the inputs only."""
        *tensors, ctx.sessions = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @torch.no_grad()  # without it `torch.func.grad` stores every chunk for a second derivative
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """Compute gradients: with p = x·e, s = Σβp and gradient g, ∂p = βg and ∂(e·k) = βg(p − s)."""
        candidates, keys, values, owner = ctx.saved_tensors
        d_candidates, d_keys, d_values = [], torch.zeros_like(keys), torch.zeros_like(values)
        chunks = _chunks(candidates, owner)
        for e, g in zip(chunks, torch.split(grads[0], [len(e) for e in chunks], dim=-1), strict=True):
            powers, total, p, s = _attend(e, keys, values, owner, ctx.sessions)
            d_p = powers * gather_by_click(g / total, owner)
            d_q = d_p * (p - gather_by_click(s, owner))
            d_candidates.append(d_p.T @ values + d_q.T @ keys)
            d_keys, d_values = d_keys + d_q @ e, d_values + d_p @ e
        return torch.cat(d_candidates), d_keys, d_values, None, None


def _attend(e: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> tuple[Tensor, ...]:
    """Return β·Z (N × C), Z (B × C), p = x_i·e_t (N × C) and Σ_i β p (B × C) of C candidates."""
    powers, p = _powers(keys @ e.T, owner, sessions), values @ e.T
    total = _floor(sum_by_session(powers, owner, sessions))
    return powers, total, p, sum_by_session(powers * p, owner, sessions) / total


def _powers(scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Compute exp(score − the session's maximum), N × C; 0 for padding, whose maximum is set to infinity."""
    places, width = owner.unsqueeze(-1).expand_as(scores), scores.shape[-1]
    lowest = torch.cat([scores.new_full((1, width), torch.inf), scores.new_full((sessions, width), -torch.inf)])
    return torch.exp(scores - lowest.scatter_reduce(0, places, scores.detach(), "amax").gather(0, places))


def _floor(total: Tensor) -> Tensor:
    """Replace the zero total of a session without clicks by the smallest normal number, to avoid NaN."""
    return total.clamp(min=torch.finfo(total.dtype).tiny)


def _chunks(candidates: Tensor, owner: Tensor) -> tuple[Tensor, ...]:
    return torch.split(candidates, max(1, CHUNK_SCORES // max(1, owner.numel())))
