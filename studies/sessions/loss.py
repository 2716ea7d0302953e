"""Cross-entropy of the next item from session vectors, for mini-batch training without `vmap`.

The same number and gradients as `cross_entropy(vectors @ embedding[1:].T, target)`. Scores are turned into exponentials
chunk by chunk while they are in the cache, and the softmax is never normalised: 1/Z goes into the B × d vectors instead.
Under `torch.func.vmap` use the plain form.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

ITEMS_AT_ONCE = 2048
"""Items of one chunk: B = 100 sessions make 0.8 MB of scores."""


def next_item_loss(vectors: Tensor, embedding: Tensor, target: Tensor) -> Tensor:
    """−log softmax_j(s_h·e_j) at the target (§2.6), once differentiable.

    Args:
        vectors: s_h, B × d.
        embedding: Row 0 is padding, item j is row j + 1, (V + 1) × d.
        target: The next item, B.

    Returns:
        B.
    """
    loss: Tensor = _NextItemLoss.apply(vectors, embedding, target)  # type: ignore[no-untyped-call]  # as torch has it
    return loss


class _NextItemLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, embedding: Tensor, target: Tensor) -> Tensor:
        """Log Z − s·e_target, with Z gathered from chunks that were each shifted by their own maximum."""
        powers, tops = [], []
        for e in torch.split(embedding[1:], ITEMS_AT_ONCE):
            scores = vectors @ e.T
            tops.append(scores.amax(1))
            powers.append(scores.sub_(tops[-1].unsqueeze(1)).exp_())
        top = torch.stack(tops, dim=1)
        highest = top.amax(1, keepdim=True)
        shift = torch.exp(top - highest)
        z = (shift * torch.stack([p.sum(1) for p in powers], dim=1)).sum(1, keepdim=True)
        ctx.save_for_backward(vectors, embedding, target, shift / z, *powers)
        return (z.log() + highest).squeeze(1) - (vectors * embedding[target + 1]).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """∂s = g(Σ_j π_j e_j − e_target) and ∂e_j = Σ_b g_b s_b (π_bj − [j = target_b])."""
        vectors, embedding, target, weights, *powers = ctx.saved_tensors
        scaled = vectors * gradient.unsqueeze(1)
        d_embedding, d_vectors = torch.empty_like(embedding), -embedding[target + 1]
        d_embedding[0] = 0
        rows = zip(*(torch.split(t[1:], ITEMS_AT_ONCE) for t in (embedding, d_embedding)), strict=True)
        for (e, d_e), power, weight in zip(rows, powers, weights.T.unsqueeze(-1), strict=True):
            torch.mm(power.T, scaled * weight, out=d_e)
            d_vectors += (power @ e) * weight
        d_embedding.index_add_(0, target + 1, scaled, alpha=-1)
        return d_vectors * gradient.unsqueeze(1), d_embedding, None
