"""Proximal term λ/2‖p − w‖²: its gradient, and its step in closed form."""

from torch import Tensor

from client.stacked_tensors import Tensors


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
