"""DP-SGD, unit `record`: the noisy mean of clipped per-record gradients (Abadi et al. 2016, Alg 1)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap

from client.training.stacks import Tensors
from client.training.steps import Loss, OneGradient, grad_and_value
from common.privacy.grid import add_gaussian


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


JOINS, CLIP, EXPECTED, GAUSSIAN = "dp.joins", "dp.clip", "dp.expected", "dp.gaussian/"
"""Keys of private step inputs: mask of sampled records, C, expected number, zC·N(0, I) a parameter."""

KEY, MULTIPLIER, KEY_BYTES = "dp.key", "dp.multiplier", 32
"""Keys of further ones for networks of packages: key of the exact noise of each step, and z."""

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
    sampled = _sample_records(rows, records, steps, noise, generator)
    sigma = noise.multiplier * noise.clip
    gaussian = {
        GAUSSIAN + name: torch.from_numpy(sigma * generator.standard_normal((steps, *p.shape))).to(p.dtype)
        for name, p in sorted(params.items())
    }
    return {**sampled, **gaussian}


def sample_exact_inputs(
    params: Mapping[str, Tensor], rows: int, records: int, steps: int, noise: DpSgdNoise
) -> Tensors:
    """Sample the inputs of `opacus_gradient`: as `sample_private_inputs`, with a key for the noise."""
    generator = noise.generator()
    keys = np.frombuffer(generator.bytes(KEY_BYTES * steps), np.uint8).reshape(steps, KEY_BYTES).copy()
    multipliers = torch.full((steps,), noise.multiplier, dtype=torch.float64)
    sampled = _sample_records(rows, records, steps, noise, generator)
    return {**sampled, KEY: torch.from_numpy(keys), MULTIPLIER: multipliers}


def _sample_records(rows: int, records: int, steps: int, noise: DpSgdNoise, generator: np.random.Generator) -> Tensors:
    joins = torch.from_numpy(generator.random((steps, rows)) < noise.sample)
    expected = max(noise.sample * records, 1.0)
    return {JOINS: joins, CLIP: torch.full((steps,), noise.clip), EXPECTED: torch.full((steps,), expected)}


def private_gradient(loss: Loss, shared: Collection[str] = ()) -> OneGradient:
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


def opacus_gradient(record_gradient: OneGradient, shared: Collection[str] = ()) -> OneGradient:
    """Return the private gradient of any network, by Opacus' `DPOptimizer` and exact noise.

    Opacus' hooks take the rows of a layer for records, and these rows are nodes of graphs. So each record has a pass of its
    own, and Opacus' module without hooks holds the gradients. Its secure noise needs torchcsprng, which has no release for
    this PyTorch. The noise is that of secure sums instead, on a grid.

    Args:
        record_gradient: Gradient and loss of a batch of one record.
        shared: Tensors of a batch that are not one row per record.

    Returns:
        The function that `private_gradient` returns, for inputs of `sample_exact_inputs`.
    """
    from opacus.grad_sample import GradSampleModuleNoOp
    from opacus.optimizers import DPOptimizer

    def gradient(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        sums = GradSampleModuleNoOp(nn.ParameterList([nn.Parameter(p.double()) for p in params.values()]))
        optimizer = DPOptimizer(
            torch.optim.SGD(sums.parameters(), lr=1.0),
            noise_multiplier=0.0,
            max_grad_norm=float(inputs[CLIP]),
            expected_batch_size=float(inputs[EXPECTED]),
        )
        losses = [torch.zeros(0)]
        for chunk in torch.split(inputs[JOINS].nonzero().flatten(), CHUNK):
            found = [record_gradient(params, *_record(k, batch, inputs, shared)) for k in chunk.tolist()]
            _set_samples_(sums, [list(each.values()) for each, _ in found])
            losses += [loss.reshape(1) for _, loss in found]
            optimizer.clip_and_accumulate()
        _set_noisy_(sums, inputs)
        optimizer.scale_grad()
        noisy = {n: total.grad.to(p.dtype) for (n, p), total in zip(params.items(), sums.parameters(), strict=True)}
        return noisy, torch.cat(losses).mean() if len(losses) > 1 else torch.zeros(())

    return gradient


def _record(k: int, batch: Tensors, inputs: Tensors, shared: Collection[str]) -> tuple[Tensors, Tensors]:
    """Return batch and step inputs of one record."""
    rows = {n: t if n in shared else t[k : k + 1] for n, t in batch.items()}
    return rows, {n: t[k : k + 1] for n, t in inputs.items() if t.dim() and not n.startswith("dp.")}


def _set_samples_(sums: nn.Module, records: Sequence[Sequence[Tensor]]) -> None:
    """Set the gradients of records, which count as zero if one of their numbers is not finite."""
    counts = [all(bool(g.isfinite().all()) for g in record) for record in records]
    totals: list[Any] = [*sums.parameters()]
    for j, total in enumerate(totals):
        each = [record[j].double() if c else torch.zeros_like(total) for record, c in zip(records, counts, strict=True)]
        total.grad_sample = torch.stack(each) if each else total.new_zeros((0, *total.shape))


def _set_noisy_(sums: nn.Module, inputs: Tensors) -> None:
    """Set each sum's gradient to the sum on a grid, plus discrete Gaussian noise of at least zC.

    One record more moves the sum by at most C. Rounding adds at most one step of the grid in each number.
    """
    totals: list[Any] = [*sums.parameters()]
    flat = np.concatenate([total.summed_grad.flatten().cpu().numpy() for total in totals])
    key = inputs[KEY].cpu().numpy().tobytes()
    noisy = torch.from_numpy(add_gaussian(flat, float(inputs[CLIP]), float(inputs[MULTIPLIER]), key))
    for total, part in zip(totals, torch.split(noisy, [total.numel() for total in totals]), strict=True):
        total.grad = part.view_as(total).to(total.device)
