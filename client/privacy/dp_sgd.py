"""DP-SGD, unit `record`: the noisy mean of clipped per-record gradients (Abadi et al. 2016, Alg 1), as a pure function.

All that is drawn or may differ between clients is drawn beforehand and handed in with the dropout masks, so that the function
can take the place of the plain gradient in `client.trainers.gradient_descent` and be mapped over a cohort.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from client.stacked_tensors import Tensors

Loss = Callable[[Tensors, Tensors, Tensors], Tensor]
"""(parameters, batch, dropout masks of one step) -> the mean loss of the batch's records, a scalar."""

JOINS, CLIP, EXPECTED, GAUSSIAN = "dp.joins", "dp.clip", "dp.expected", "dp.gaussian/"
"""What `draws` adds to the dropout masks: who takes part, C, the expected number of them, and zC·N(0, I) by parameter."""

AT_ONCE = 64
"""Records whose gradients are held side by side: each is as large as the model."""


def draws(
    params: Mapping[str, Tensor],
    rows: int,
    records: int,
    steps: int,
    *,
    clip: float,
    multiplier: float,
    sample: float,
    generator: np.random.Generator,
) -> Tensors:
    """All that is random in `steps` private steps of one client, steps × …; to be merged into its dropout masks.

    Args:
        params: The client's parameters, for their shapes.
        rows: H, rows of a batch.
        records: n, records among them; taken as public. A step's sum is divided by qn, whoever takes part.
        steps: τ.
        clip: C, largest norm of a record's gradient.
        multiplier: z.
        sample: q, the probability with which each record joins a step, by itself (Poisson sampling).
        generator: Where chance comes from; see `common.privacy.randomness`.
    """
    joins = torch.from_numpy(generator.random((steps, rows)) < sample)
    expected = max(sample * records, 1.0)
    gaussian = {
        GAUSSIAN + name: torch.from_numpy(multiplier * clip * generator.standard_normal((steps, *p.shape))).to(p.dtype)
        for name, p in sorted(params.items())
    }
    return {JOINS: joins, CLIP: torch.full((steps,), clip), EXPECTED: torch.full((steps,), expected), **gaussian}


def private_gradient(
    loss: Loss, shared: Collection[str] = ()
) -> Callable[[Tensors, Tensors, Tensors], tuple[Tensors, Tensor]]:
    """(Σ_{i joins} min(1, C/‖g_i‖) g_i + zC·N(0, I)) / (qn) in place of `grad_and_value(loss)`.

    A record whose gradient is not finite counts as zero, so that its presence cannot be told from a failure. The value, a mean
    of losses, carries no noise and must not leave the client.

    Args:
        loss: Mean over a batch's records; of one record, its own loss.
        shared: Tensors of a batch that are not one row a record.

    Returns:
        (parameters, batch of H rows, dropout masks of H rows with one step's draws) -> (gradient, mean loss).
    """

    def gradient(params: Tensors, batch: Tensors, noise: Tensors) -> tuple[Tensors, Tensor]:
        masks = {n: m for n, m in noise.items() if not n.startswith("dp.")}
        by_row = ({n: None if n in shared else 0 for n in batch}, dict.fromkeys(masks, 0))
        summed, values = {n: torch.zeros_like(p) for n, p in params.items()}, [params[min(params)].new_zeros(0)]
        for first in range(0, len(noise[JOINS]), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            rows = {n: t if n in shared else t[some] for n, t in batch.items()}
            each, value = vmap(of_one, in_dims=(None, *by_row))(params, rows, {n: m[some] for n, m in masks.items()})
            weights = noise[JOINS][some] * bounded(each, noise[CLIP])
            summed = {n: summed[n] + torch.tensordot(weights.to(g.dtype), _finite(g), 1) for n, g in each.items()}
            values.append(value)
        return {n: (g + noise[GAUSSIAN + n]) / noise[EXPECTED] for n, g in summed.items()}, torch.cat(values).mean()

    def of_one(params: Tensors, record: Tensors, masks: Tensors) -> tuple[Tensors, Tensor]:
        alone = {n: t if n in shared else t.unsqueeze(0) for n, t in record.items()}
        found: tuple[Tensors, Tensor] = grad_and_value(loss)(
            params, alone, {n: m.unsqueeze(0) for n, m in masks.items()}
        )
        return found

    return gradient


def bounded(each: Tensors, largest: Tensor) -> Tensor:
    """Factors, H, that bring every record's gradient (H × … by parameter) within that norm; 0 where it is not finite."""
    squares = [each[n].flatten(1).square().sum(1) for n in sorted(each)]
    norms = torch.stack(squares).sum(0).sqrt()
    factors = torch.clamp(largest * _INSIDE / norms.clamp(min=torch.finfo(norms.dtype).tiny), max=1.0)
    return torch.where(norms.isfinite(), factors, 0.0)


_INSIDE = 1 - 1e-5
"""Keeps a clipped gradient inside the ball whatever float32 rounds."""


def _finite(gradient: Tensor) -> Tensor:
    """Zero times infinity is not zero."""
    return torch.nan_to_num(gradient, 0.0, 0.0, 0.0)
