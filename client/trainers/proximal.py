"""The pull of a model towards another, λ/2‖p − w‖²: its gradient, and its closed form."""

from torch import Tensor

from client.stacked_tensors import Tensors


def add_pull(gradient: Tensors, params: Tensors, start: Tensors, strength: float) -> Tensors:
    """The gradient with that of λ/2‖p − w‖² added: g + λ(p − w)."""
    return {n: g + strength * (params[n] - start[n]) for n, g in gradient.items()}


def apply_proximal(stepped: Tensor, anchor: Tensor, lr: float, strength: float) -> Tensor:
    """(p − lr·g + 2·lr·λ·w)/(1 + 2·lr·λ) of p − lr·g: λ‖p − w‖², without the ½, in closed form, stable at any λ (§5.4).

    An explicit step on it needs lr < 1/λ, which the paper's lr .1 with λ 1000 is not.
    """
    return (stepped + 2 * lr * strength * anchor) / (1 + 2 * lr * strength)
