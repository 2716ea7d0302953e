"""TAGNN's target attention over many candidates in bounded memory (algorithms.md §2.7).

Written out, attention holds B × L × V numbers several times over: 1 GB for 100 sessions and 40,000 items. Here candidates
come in chunks, and the way back computes each chunk anew instead of keeping it.
"""

from typing import Any

import torch
from torch import Tensor

NUMBERS_AT_ONCE = 2**22
"""B × L × candidates of one chunk; a chunk holds about five times these 16 MB."""


def target_scores(candidates: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Σ_i β_ti (x_i·e_t) with β_t = softmax_i(e_t·k_i) over real clicks; 0 for a session without clicks. Once differentiable.

    Args:
        candidates: e_t, V × d.
        keys: k_i, B × L × d.
        values: x_i, B × L × d.
        mask: 1 for clicks, 0 for padding, B × L.

    Returns:
        B × V.
    """
    scores: Tensor = _TargetScores.apply(candidates, keys, values * mask.unsqueeze(-1), mask)  # type: ignore[no-untyped-call]  # as torch has it
    return scores


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Softmax over what the mask keeps, everything else 0; uniform, not NaN, where it keeps nothing."""
    return torch.softmax(torch.where(mask > 0, scores, torch.finfo(scores.dtype).min), dim)


class _TargetScores(torch.autograd.Function):
    """`target_scores` of values that are zero in the padding."""

    generate_vmap_rule = True

    @staticmethod
    def forward(candidates: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """The scores, B × V."""
        return torch.cat([_attend(e, keys, values, mask)[2] for e in _chunks(candidates, mask)], dim=-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """Keep the inputs only."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    @torch.no_grad()  # without it `torch.func.grad` keeps every chunk for a second derivative
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """With p = x·e, s = Σβp and gradient g: ∂p = βg, ∂(e·k) = βg(p − s)."""
        candidates, keys, values, mask = ctx.saved_tensors
        d_candidates, d_keys, d_values = [], torch.zeros_like(keys), torch.zeros_like(values)
        chunks = _chunks(candidates, mask)
        for e, g in zip(chunks, torch.split(grads[0], [len(e) for e in chunks], dim=-1), strict=True):
            beta, p, s = _attend(e, keys, values, mask)
            d_p = beta * g.unsqueeze(-2)
            d_q = d_p * (p - s.unsqueeze(-2))
            d_candidates.append(_over_clicks(d_p, values) + _over_clicks(d_q, keys))
            d_keys, d_values = d_keys + d_q @ e, d_values + d_p @ e
        return torch.cat(d_candidates), d_keys, d_values, None


def _attend(e: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """β and p = x_i·e_t, both B × L × C, and Σ_i β p, B × C, of C candidates."""
    beta = masked_softmax(keys @ e.T, mask.unsqueeze(-1), dim=-2)
    p = values @ e.T
    return beta, p, (beta * p).sum(-2)


def _over_clicks(weights: Tensor, rows: Tensor) -> Tensor:
    """Σ over sessions and clicks of weight × row, C × d from B × L × C and B × L × d."""
    return weights.flatten(0, 1).T @ rows.flatten(0, 1)


def _chunks(candidates: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    return torch.split(candidates, max(1, NUMBERS_AT_ONCE // max(1, mask.numel())))
