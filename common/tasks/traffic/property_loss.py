"""L_p of forecasts by the clock, as a tensor function that also runs under torch.func.vmap and grad (Eq 2)."""

import torch
from torch import Tensor

from common.logic.projections import clamp, property_loss, separate


def violation(forecast: Tensor, low: Tensor, high: Tensor, pair: tuple[int, int] | None) -> Tensor:
    """L_p, the mean distance of forecasts, B × P × D, to the closest that obey: a scalar.

    Args:
        forecast: In standard deviations.
        low: Lower bounds of every reading, B × P × D; of a difference, B × P × 1.
        high: Upper bounds; a difference has none.
        pair: Places of the variables whose difference x₁ − x₂ > low is asked for (template 4); None asks for
            low ≤ x ≤ high (template 1).
    """
    if pair is None:
        return property_loss(forecast, clamp(forecast, low, high))
    columns = list(forecast.unbind(-1))
    columns[pair[0]], columns[pair[1]] = separate(columns[pair[0]], columns[pair[1]], low.squeeze(-1))
    return property_loss(forecast, torch.stack(columns, -1))
