"""The local loop, once: gradient descent as a pure function of stacked tensors.

K clients descend at the same time, stacked along dimension 0 and mapped with `torch.func.vmap`; a real client is K = 1.
There is no hidden state: dropout masks, moments and control variates are arguments and results.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from client.stacked_tensors import Tensors, select
from client.trainers.optimizers import Moments, Step, clip

GradientAndLoss = Callable[[Tensors, Tensors, Tensors], tuple[Tensors, Tensor]]
"""(parameters, batch, dropout masks of one step) of one client -> ∇L_k and L_k, a scalar."""

Correct = Callable[[Tensors, Tensors], Tensors]
"""(gradient, parameters) -> direction g̃ to step along; everything K × …."""

Frozen = Callable[[int], Collection[str]]
"""Step t -> names of the parameters that stay as they are in it."""


@dataclass(frozen=True)
class Descent:
    """Where K clients ended, all stacked K × …."""

    params: Tensors
    moments: Moments
    gradient: Tensors
    """s_k = mean_t g̃_k^t, mean corrected gradient along the path."""
    loss: Tensor
    """L_k at the start, K."""


def descend(
    gradient_and_loss: GradientAndLoss,
    start: Tensors,
    *,
    batch: Tensors,
    noise: Tensors,
    steps: int,
    step: Step,
    moments: Moments,
    clip_norm: float,
    correct: Correct = lambda gradient, params: gradient,
    frozen: Frozen = lambda t: (),
) -> Descent:
    """Make `steps` full-batch steps from `start`.

    Args:
        gradient_and_loss: Of one client's objective.
        start: θ_k¹, K × ….
        batch: Each client's data, K × ….
        noise: Dropout masks, K × steps × ….
        steps: τ.
        step: Optimiser step.
        moments: Optimiser memory before the first step.
        clip_norm: Largest norm of a client's raw gradient, 0 for no clipping.
        correct: What the method makes of a gradient (proximal pull, control variate); nothing, unless given.
        frozen: Layers that rest in a step; they count neither in the gradient's norm nor in its mean.
    """
    of_all = vmap(gradient_and_loss)
    params, first_loss = start, torch.zeros(())
    total = {n: torch.zeros_like(p) for n, p in start.items()}
    for t in range(steps):
        gradient, value = of_all(params, batch, {n: masks[:, t] for n, masks in noise.items()})
        resting = frozen(t)
        moving = {n: g for n, g in gradient.items() if n not in resting}
        direction = correct(clip(moving, clip_norm), params)
        params, moments = _stepped(step, params, direction, moments)
        total |= {n: total[n] + g for n, g in direction.items()}
        first_loss = value if t == 0 else first_loss
    return Descent(params, moments, {n: g / steps for n, g in total.items()}, first_loss)


def _stepped(step: Step, params: Tensors, direction: Tensors, moments: Moments) -> tuple[Tensors, Moments]:
    """Step the parameters that have a direction; the others, and their moments, stay."""
    if direction.keys() == params.keys():
        return step(params, direction, moments)
    known = Moments(moments.count, select(moments.first, direction), select(moments.second, direction))
    moved, after = step(select(params, direction), direction, known)
    first, second = {**moments.first, **after.first}, {**moments.second, **after.second}
    return {**params, **moved}, Moments(after.count, first, second)
