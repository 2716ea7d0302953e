"""Property loss L_p of forecasts (Eq 2) as a tensor function for torch.func.vmap and grad."""

import torch
from torch import Tensor

from common.logic.projections import clamp, property_loss, separate


def violation(forecast: Tensor, low: Tensor, high: Tensor, pair: tuple[int, int] | None) -> Tensor:
    """Compute L_p, the mean distance of forecasts to the closest satisfying ones, a scalar.

    Args:
        forecast: Forecasts in standard deviations, B × P × D.
        low: Lower bounds of each reading, B × P × D; of a difference, B × P × 1.
        high: Upper bounds of the same shape; not used for a difference.
        pair: Indices of the variables with x₁ − x₂ > low (template 4); None for low ≤ x ≤ high (template 1).
    """
    if pair is None:
        return property_loss(forecast, clamp(forecast, low, high))
    columns = list(forecast.unbind(-1))
    columns[pair[0]], columns[pair[1]] = separate(columns[pair[0]], columns[pair[1]], low.squeeze(-1))
    return property_loss(forecast, torch.stack(columns, -1))


def judged_violation(forecast: Tensor, taught: Tensor, judged: Tensor) -> Tensor:
    """Compute L_p over the forecasts that a formula judges, a scalar; 0 if it judges none.

    Args:
        forecast: Forecasts in standard deviations, B × P × D.
        taught: Closest satisfying forecasts, constants of the same shape.
        judged: 1 for each judged forecast, else 0, B.
    """
    distances = (forecast - taught).abs().mean((-2, -1))
    return (judged * distances).sum() / judged.sum().clamp(min=1)
