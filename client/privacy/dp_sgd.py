"""DP-SGD, unit `record`: the noisy mean of clipped per-record gradients (Abadi et al. 2016, Alg 1)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from client.training.stacks import Tensors
from client.training.steps import grad_and_value


@dataclass(frozen=True)
class DpSgdNoise:
    """DP-SGD noise of one client in one round."""

    clip: float
    """Maximum norm C of a record's gradient."""
    multiplier: float
    """Noise multiplier z: the noise on a step's sum of gradients has the standard deviation zC."""
    sample: float
    """Probability q with which a record joins a step."""
    generator: Callable[[], np.random.Generator]
    """Factory of the random generator for DP noise; cryptographically seeded outside simulations."""


def secret_generator(noise: DpSgdNoise) -> torch.Generator:
    """Return the generator of dropout masks under DP-SGD, secretly seeded.

    A known seed would reveal every record's mask. A mask's place depends on the number of records, so one record less would
    change the gradients of the remaining records too. Secret masks reveal nothing about the other records.
    """
    return torch.Generator().manual_seed(int(noise.generator().integers(2**63)))


Loss = Callable[[Tensors, Tensors, Tensors], Tensor]
"""(parameters, batch, dropout masks of one step) -> mean loss of the batch's records, a scalar."""

JOINS, CLIP, EXPECTED, GAUSSIAN = "dp.joins", "dp.clip", "dp.expected", "dp.gaussian/"
"""Keys of private step inputs: mask of sampled records, C, expected number, zC·N(0, I) a parameter."""

CHUNK = 64
"""Number of records whose gradients, each as large as the model, are in memory at once."""

_INSIDE = 1 - 1e-5
"""Factor that keeps a clipped gradient inside the ball, whatever the rounding of float32."""


def sample_private_inputs(
    params: Mapping[str, Tensor], rows: int, records: int, steps: int, noise: DpSgdNoise
) -> Tensors:
    """Sample the random inputs of `steps` private steps of one client; each tensor is steps × ….

    They are merged into its dropout masks.

    Args:
        params: The client's parameters, for their shapes.
        rows: Number H of rows of a batch.
        records: Number n of records among them, taken as public. A step's sum is divided by qn, whatever records are sampled.
        steps: Number of steps τ.
        noise: Clip norm C, noise multiplier z, sampling probability q of each record by itself (Poisson), and generator.
    """
    generator = noise.generator()
    joins = torch.from_numpy(generator.random((steps, rows)) < noise.sample)
    expected = max(noise.sample * records, 1.0)
    sigma = noise.multiplier * noise.clip
    gaussian = {
        GAUSSIAN + name: torch.from_numpy(sigma * generator.standard_normal((steps, *p.shape))).to(p.dtype)
        for name, p in sorted(params.items())
    }
    return {JOINS: joins, CLIP: torch.full((steps,), noise.clip), EXPECTED: torch.full((steps,), expected), **gaussian}


def private_gradient(
    loss: Loss, shared: Collection[str] = ()
) -> Callable[[Tensors, Tensors, Tensors], tuple[Tensors, Tensor]]:
    """Return the private gradient, in place of `grad_and_value(loss)`.

    It is (Σ_{i joins} min(1, C/‖g_i‖) g_i + zC·N(0, I)) / (qn).
    A record with a non-finite gradient counts as zero, so that a failure does not reveal its presence. The returned value, a
    mean of losses, carries no noise and must not leave the client.

    Args:
        loss: Mean loss over a batch's records.
        shared: Tensors of a batch that are not one row per record.

    Returns:
        (parameters, batch of H rows, dropout masks of H rows with private inputs of one step) -> (gradient, mean loss).
    """

    def gradient(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        masks = {n: m for n, m in inputs.items() if not n.startswith("dp.")}
        by_row = ({n: None if n in shared else 0 for n in batch}, dict.fromkeys(masks, 0))
        summed, values = {n: torch.zeros_like(p) for n, p in params.items()}, [params[min(params)].new_zeros(0)]
        for first in range(0, len(inputs[JOINS]), CHUNK):
            some = slice(first, first + CHUNK)
            rows = {n: t if n in shared else t[some] for n, t in batch.items()}
            each, value = vmap(of_one, in_dims=(None, *by_row))(params, rows, {n: m[some] for n, m in masks.items()})
            weights = inputs[JOINS][some] * clip_factors(each, inputs[CLIP])
            summed = {n: summed[n] + torch.tensordot(weights.to(g.dtype), _finite(g), 1) for n, g in each.items()}
            values.append(value)
        return {n: (g + inputs[GAUSSIAN + n]) / inputs[EXPECTED] for n, g in summed.items()}, torch.cat(values).mean()

    def of_one(params: Tensors, record: Tensors, masks: Tensors) -> tuple[Tensors, Tensor]:
        alone = {n: t if n in shared else t.unsqueeze(0) for n, t in record.items()}
        result: tuple[Tensors, Tensor] = grad_and_value(loss)(
            params, alone, {n: m.unsqueeze(0) for n, m in masks.items()}
        )
        return result

    return gradient


def clip_factors(each: Tensors, largest: Tensor) -> Tensor:
    """Return factors, H, that clip every record's gradient (H × …) to that norm; 0 if it is non-finite."""
    squares = [each[n].flatten(1).square().sum(1) for n in sorted(each)]
    norms = torch.stack(squares).sum(0).sqrt()
    factors = torch.clamp(largest * _INSIDE / norms.clamp(min=torch.finfo(norms.dtype).tiny), max=1.0)
    return torch.where(norms.isfinite(), factors, 0.0)


def _finite(gradient: Tensor) -> Tensor:
    """Replace non-finite numbers by 0: a factor of 0 alone would leave NaN."""
    return torch.nan_to_num(gradient, 0.0, 0.0, 0.0)
