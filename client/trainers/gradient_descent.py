"""Local gradient descent as a pure function of stacked tensors.

K clients are stacked along dimension 0 and mapped with `torch.func.vmap`; a real client is K = 1. There is no hidden state:
step inputs, moments and control variates are arguments and results.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from client.gradients import grad_and_value
from client.stacked_tensors import Tensors
from client.tasks.learner import HasRecurrentNetwork, Learner
from client.trainers.optimizers import Moments, Step, clip, copy

Loss = Callable[[Tensors, Tensors, Tensors], Tensor]
"""(parameters, batch, inputs of one step) of one client -> L_k, a scalar."""

GradientAndLoss = Callable[[Tensors, Tensors, Tensors], tuple[Tensors, Tensor]]
"""(parameters, batch, inputs of one step), all K × … -> ∇L_k, K × …, and L_k, (K,)."""

Correct = Callable[[Tensors, Tensors], Tensors]
"""(gradient, parameters) -> step direction g̃; all K × …."""

Frozen = Callable[[int], Collection[str]]
"""Step t, from 0 -> names of the parameters that it does not change."""


@dataclass(frozen=True)
class Descent:
    """Result of local descent, stacked K × …."""

    params: Tensors
    moments: Moments
    gradient: Tensors
    """s_k = mean_t g̃_k^t, the mean corrected gradient of the steps."""
    loss: Tensor
    """L_k before the first step, (K,)."""


def differentiate(loss: Loss) -> GradientAndLoss:
    """Return the gradients of all clients' losses, computed as the gradient of their sum.

    No client's loss depends on another's parameters. The result equals `vmap(grad_and_value(loss))` bit for bit,
    takes less time and needs no import of PyTorch's compiler.
    """

    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        leaves = {n: p.detach().requires_grad_() for n, p in params.items()}
        losses: Tensor = vmap(loss)(leaves, batch, inputs)
        if not losses.requires_grad:
            return {n: torch.zeros_like(p) for n, p in params.items()}, losses
        gradients = torch.autograd.grad(losses.sum(), [*leaves.values()], materialize_grads=True)
        in_order = [g.contiguous() for g in gradients]  # sums over them round by the order of their numbers in memory
        return dict(zip(leaves, in_order, strict=True)), losses.detach()

    return gradient_and_loss


def plain_gradient(learner: Learner) -> GradientAndLoss:
    """Return ∇L_k and L_k of clients whose data have the form of this learner's."""
    if isinstance(learner, HasRecurrentNetwork):
        return vmap(grad_and_value(learner.loss))
    return differentiate(learner.loss)


def descend(
    gradient_and_loss: GradientAndLoss,
    start: Tensors,
    *,
    batch: Tensors,
    inputs: Tensors,
    steps: int,
    step: Step,
    moments: Moments,
    clip_norm: float,
    correct: Correct = lambda gradient, params: gradient,
    frozen: Frozen = lambda t: (),
) -> Descent:
    """Make `steps` local steps from `start`, each on the whole batch.

    Args:
        gradient_and_loss: Gradients and values of the clients' objectives.
        start: θ_k¹, K × ….
        batch: Data of each client, K × ….
        inputs: Step inputs, such as dropout masks, K × steps × ….
        steps: Number τ of steps.
        step: Optimizer step.
        moments: Moments before the first step.
        clip_norm: Maximum L2 norm of a client's gradient; 0 for no clipping.
        correct: Step direction from the clipped gradient, such as with a proximal term or a control variate.
        frozen: Parameters that a step does not change; the norm and the mean of gradients leave them out.
    """
    params, moments, total, first_loss = copy(start), moments.copy(), dict[str, Tensor](), torch.zeros(())
    for t in range(steps):
        gradient, value = gradient_and_loss(params, batch, {n: masks[:, t] for n, masks in inputs.items()})
        excluded = frozen(t)
        moving = {n: g for n, g in gradient.items() if n not in excluded}
        direction = correct(clip(moving, clip_norm), params)
        step(params, direction, moments)
        for n, g in direction.items():
            total[n] = total[n].add_(g) if n in total else (g + 0.0).contiguous()  # not −0.0
        first_loss = value if t == 0 else first_loss
    mean = {n: total[n].div_(steps) if n in total else torch.zeros_like(p) for n, p in start.items()}
    return Descent(params, moments, mean, first_loss)
