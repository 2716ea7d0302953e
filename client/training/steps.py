"""Local gradient steps as pure functions of stacked tensors: gradients, optimizers, the proximal term.

Gradients are those of `torch.func`, without PyTorch's compiler, which fedloom does not use. PyTorch 2.13 imports
`torch._dynamo` at the first gradient, only to suspend compiled autograd. The import takes a second and 80 MB of every
client. Its one caller, `_autograd_grad`, is replaced here by the same computation without it. Gradients are equal bit
for bit, which a test checks.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch._functorch import eager_transforms
from torch.func import grad_and_value as grad_and_value
from torch.func import vmap

from client.tasks.learner import FastLoss, HasRecurrentNetwork, Learner, StackedLoss, is_unstacked
from client.training.stacks import Tensors, at, device_of, new_tensors_on
from common.methods.base import LocalTraining
from common.tasks.networks import SEED

_with_compiler = eager_transforms._autograd_grad


def _autograd_grad(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_outputs: Sequence[Tensor] | None = None,
    retain_graph: bool = False,
    create_graph: bool = True,
) -> tuple[Tensor, ...]:
    """Return the gradients, zero for inputs on which no output depends; leave other cases to PyTorch."""
    differentiable = all(output.requires_grad for output in outputs)
    if "torch._dynamo" in sys.modules or grad_outputs is not None or not differentiable:
        return _with_compiler(outputs, inputs, grad_outputs, retain_graph, create_graph)
    gradients = torch.autograd.grad(
        outputs, inputs, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True
    )
    return tuple(
        torch.zeros_like(i) if gradient is None else gradient for gradient, i in zip(gradients, inputs, strict=True)
    )


eager_transforms._autograd_grad = _autograd_grad


_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Kingma & Ba 2015


@dataclass(frozen=True)
class Moments:
    """Moments of Adam; empty under SGD.

    Args:
        count: Number of steps so far of each client, (K,).
        first: First moments, K × ….
        second: Second moments, K × ….
    """

    count: Tensor
    first: Tensors = field(default_factory=dict)
    second: Tensors = field(default_factory=dict)

    @cached_property
    def are_even(self) -> bool:
        """True if several clients have made equally many steps; found once, since a GPU waits for it."""
        return len(self.count) > 1 and bool((self.count == self.count[0]).all())

    def copy(self) -> "Moments":
        """Return moments in memory of their own, in the order of their numbers."""
        return Moments(self.count.clone(), copy(self.first), copy(self.second))


Step = Callable[[Tensors, Tensors, Moments], None]
"""(parameters, direction, moments) -> None; changes moments and parameters in place.

Parameters without a direction stay.
"""


def build_step(options: LocalTraining) -> Step:
    """Return the step of the optimizer that the options name."""

    def sgd(params: Tensors, direction: Tensors, moments: Moments) -> None:
        for n, g in direction.items():
            params[n].sub_(options.rate(n) * g)

    def adam(params: Tensors, direction: Tensors, moments: Moments) -> None:
        count = moments.count.add_(1)
        if moments.are_even:
            _step_fused(options, params, direction, moments)
            return
        unbias = torch.sqrt(1 - _BETA2**count)
        for n, g in direction.items():
            first = moments.first[n].lerp_(g, 1 - _BETA1)
            second = moments.second[n].mul_(_BETA2).addcmul_(g, g, value=1 - _BETA2)
            size = to_client_shape(-options.rate(n) * unbias / (1 - _BETA1**count), g)
            root = torch.sqrt(second).add_(to_client_shape(_EPSILON * unbias, g))
            params[n].addcdiv_(size * first, root)

    return sgd if options.optimizer == "sgd" else adam


def _step_fused(options: LocalTraining, params: Tensors, direction: Tensors, moments: Moments) -> None:
    """Make Adam's step of clients with equal counts in one pass; equal to the other up to rounding."""
    for n, g in direction.items():
        torch._fused_adam_(
            [params[n]],
            [g.contiguous()],
            [moments.first[n]],
            [moments.second[n]],
            [],
            [moments.count[0].float()],
            lr=options.rate(n),
            beta1=_BETA1,
            beta2=_BETA2,
            weight_decay=0.0,
            eps=_EPSILON,
            amsgrad=False,
            maximize=False,
        )


def initialize_moments(options: LocalTraining, params: Tensors, clients: int = 0) -> Moments:
    """Return the moments before the first step, for parameters K × …; `clients` is K if tables are short."""
    rows, device = clients or next(iter(params.values())).shape[0], device_of(params)
    precise = torch.float32 if device.type == "mps" else torch.float64  # 1 − β₂ᵗ loses four digits in float32
    count = torch.zeros(rows, dtype=precise, device=device)
    if options.optimizer == "sgd":
        return Moments(count)
    zeros = {n: torch.zeros_like(p) for n, p in params.items()}
    return Moments(count, zeros, {n: torch.zeros_like(p) for n, p in params.items()})


def copy(stacked: Tensors) -> Tensors:
    """Return the tensors in memory of their own, in the order of their numbers."""
    return {n: t.clone(memory_format=torch.contiguous_format) for n, t in stacked.items()}


def clip(direction: Tensors, max_norm: float) -> Tensors:
    """Scale each client's gradient to an L2 norm of at most `max_norm`; 0: no clipping."""
    if max_norm == 0:
        return direction
    squares = [direction[n].flatten(1).square().sum(1) for n in sorted(direction)]  # decoded models have any order
    norms = torch.stack(squares).sum(0).sqrt()
    factor = torch.clamp(max_norm / norms.clamp(min=torch.finfo(norms.dtype).tiny), max=1.0)
    return {n: g * to_client_shape(factor, g) for n, g in direction.items()}


def to_client_shape(numbers: Tensor, like: Tensor) -> Tensor:
    """Return numbers (K,) in the dtype of `like` and in a shape that broadcasts to K × …."""
    return numbers.to(like.dtype).reshape(-1, *[1] * (like.dim() - 1))


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


def differentiate(loss: Loss, fast: FastLoss | None = None) -> GradientAndLoss:
    """Return the gradients of all clients' losses, computed as the gradient of their sum.

    No client's loss depends on another's parameters. The result equals `vmap(grad_and_value(loss))` bit for bit,
    takes less time and needs no import of PyTorch's compiler. With `fast` it is equal up to rounding.
    """
    prepared: list[tuple[Tensors, StackedLoss]] = []

    def stacked(params: Tensors, batch: Tensors) -> StackedLoss:
        if fast is None:
            return lambda params, inputs: vmap(loss)(params, batch, inputs)
        if not prepared or prepared[0][0] is not batch:  # steps of a round have one batch
            prepared[:] = [(batch, fast.stacked_loss(params, batch))]
        return prepared[0][1]

    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        leaves = {n: p.detach().requires_grad_() for n, p in params.items()}
        losses = stacked(leaves, batch)(leaves, inputs)
        if not losses.requires_grad:
            return {n: torch.zeros_like(p) for n, p in params.items()}, losses
        gradients = torch.autograd.grad(losses.sum(), [*leaves.values()], materialize_grads=True)
        in_order = [g.contiguous() for g in gradients]  # sums over them round by the order of their numbers in memory
        return dict(zip(leaves, in_order, strict=True)), losses.detach()

    return gradient_and_loss


OneGradient = Callable[[Tensors, Tensors, Tensors], tuple[Tensors, Tensor]]
"""(parameters, batch, inputs of one step) of one client -> ∇L_k, L_k."""


def one_gradient(loss: Loss) -> OneGradient:
    """Return the gradient of one client's loss by PyTorch's own autograd, which any network supports."""

    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        leaves = {n: p.detach().requires_grad_() for n, p in params.items()}
        value = loss(leaves, batch, inputs)
        gradients = torch.autograd.grad(value, [*leaves.values()], materialize_grads=True)
        return dict(zip(leaves, gradients, strict=True)), value.detach()

    return gradient_and_loss


def alone(learner: Learner, gradient: OneGradient) -> GradientAndLoss:
    """Return the gradient function of a stack of one client, whose network is a package's."""
    module: Any = learner.module

    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        params, batch, inputs = at(params, 0), at(batch, 0), at(inputs, 0)
        with module.step(inputs[SEED]):
            found, value = gradient(params, batch, inputs)
        return {n: g.unsqueeze(0) for n, g in found.items()}, value.unsqueeze(0)

    return gradient_and_loss


def plain_gradient(learner: Learner) -> GradientAndLoss:
    """Return ∇L_k and L_k of clients whose data have the form of this learner's."""
    if is_unstacked(learner):
        return alone(learner, one_gradient(learner.loss))
    if isinstance(learner, HasRecurrentNetwork):
        return vmap(grad_and_value(learner.loss))
    return differentiate(learner.loss, learner if isinstance(learner, FastLoss) else None)


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
        excluded = frozen(t)
        with new_tensors_on(device_of(start)):
            gradient, value = gradient_and_loss(params, batch, {n: masks[:, t] for n, masks in inputs.items()})
            moving = {n: g for n, g in gradient.items() if n not in excluded}
            direction = correct(clip(moving, clip_norm), params)
        step(params, direction, moments)
        for n, g in direction.items():
            total[n] = total[n].add_(g) if n in total else (g + 0.0).contiguous()  # not −0.0
        first_loss = value if t == 0 else first_loss
    mean = {n: total[n].div_(steps) if n in total else torch.zeros_like(p) for n, p in start.items()}
    return Descent(params, moments, mean, first_loss)


def add_pull(gradient: Tensors, params: Tensors, start: Tensors, strength: float) -> Tensors:
    """Return g + λ(p − w), the gradient g with that of λ/2‖p − w‖² added."""
    return {n: g + strength * (params[n] - start[n]) for n, g in gradient.items()}


def apply_proximal(stepped: Tensor, anchor: Tensor, lr: float, strength: float) -> Tensor:
    """Return (p − lr·g + 2·lr·λ·w)/(1 + 2·lr·λ): the implicit step on λ‖p − w‖², stable for any λ (§5.4).

    An explicit step needs lr < 1/λ, which the paper's lr = .1 with λ = 1000 violates.

    Args:
        stepped: p − lr·g, the parameters after the gradient step.
        anchor: w.
        lr: Step size.
        strength: λ, of a term without the factor ½.
    """
    return (stepped + 2 * lr * strength * anchor) / (1 + 2 * lr * strength)
