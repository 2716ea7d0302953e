"""Rating models with named inputs, for export."""

import numpy as np
import torch
from torch import Tensor, nn

from client.tasks.registry import ExportableNetwork
from common.arrays import Arrays, Floats
from common.tasks.ratings.options import RatingsOptions


class ScoredRatings(nn.Module):
    """Prediction of the default model in float64; see `baseline.predict`.

    Args:
        z: Normal scores of the I products.
        options: Options, adjusted to the noise of the scores.
    """

    def __init__(self, z: Floats, options: RatingsOptions) -> None:
        super().__init__()
        weights = (options.prior_weight, options.prior_weight * options.prior, options.slope_weight)
        constants = (*weights, options.slope_weight * options.slope)
        self.register_buffer("z", torch.from_numpy(z))
        self.register_buffer("constants", torch.tensor(constants, dtype=torch.float64))  # literals would be float32

    def forward(self, items: Tensor, values: Tensor) -> Tensor:
        """Predict all products, I, from the rated products and their shares of the scale, n each."""
        z, (w, prior, w_slope, slope) = self.get_buffer("z"), self.get_buffer("constants").unbind()
        number = torch.ones_like(values).sum() + w
        m = (values.sum() + prior) / number
        center = z[items].sum() / number
        away = z[items] - center
        s = ((away * (values - m)).sum() + slope) / ((away * away).sum() + w_slope)
        return (m + s * (z - center)).clamp(0, 1)


class SolvedRatings(nn.Module):
    """Prediction of the closed form in float64; see `neighbours.predict`.

    Args:
        biases: Biases b of the I products.
        factors: Factors U, I × r.
        strength: λ of the ridge.
        options: Options of the task.
    """

    def __init__(self, biases: Floats, factors: Floats, strength: float, options: RatingsOptions) -> None:
        super().__init__()
        self.rank, weight = factors.shape[1], options.prior_weight
        self.register_buffer("biases", torch.from_numpy(biases))
        self.register_buffer("factors", torch.from_numpy(factors))
        self.register_buffer("constants", torch.tensor((weight, weight * options.prior), dtype=torch.float64))
        self.register_buffer("ridge", strength * torch.eye(self.rank, dtype=torch.float64))

    def forward(self, items: Tensor, values: Tensor) -> Tensor:
        """Predict all products, I, from the rated products and their shares of the scale, n each."""
        biases, factors = self.get_buffer("biases"), self.get_buffer("factors")
        weight, prior = self.get_buffer("constants").unbind()
        number = torch.ones_like(values).sum() + weight
        left = values - (values.sum() + prior) / number - biases[items]
        middle, rated = (values.sum() + prior) / number + left.sum() / number, factors[items]
        residuals = (left - left.sum() / number).clamp(-1, 1)
        # ONNX Runtime 1.32 computes `rated.T @ residuals` wrongly: its fused product of a transposed matrix and a vector
        z = self._solve(rated.T @ rated + self.get_buffer("ridge"), residuals @ rated)
        return (middle + biases + factors @ z).clamp(0, 1)

    def _solve(self, matrix: Tensor, right: Tensor) -> Tensor:
        """Solve a positive definite system by elimination, r steps of operations that every runtime has."""
        rows = torch.cat([matrix, right[:, None]], dim=1)
        for k in range(self.rank):
            pivot = rows[k] / rows[k, k]
            rows = rows - rows[:, k, None] * pivot
            rows = torch.cat([rows[:k], pivot[None], rows[k + 1 :]])
        return rows[:, -1]


class StarRatings(nn.Module):
    """Prediction of the paper's model for the rater whose vector it holds."""

    def __init__(self, network: nn.Module, items: int) -> None:
        super().__init__()
        self.network, self.items = network, items

    def forward(self, items: Tensor) -> Tensor:
        """Predict all products, I, from the rated products, n."""
        queries = torch.arange(self.items).unsqueeze(0)
        mask = torch.ones_like(items, dtype=torch.float32).unsqueeze(0)
        ratings: Tensor = self.network(items.unsqueeze(0), mask, queries)[0]
        return ratings


def exportable(module: nn.Module, items: int, *, paper: bool) -> ExportableNetwork:
    """Return the network with inputs `items` and, by default, `values`; sizes are numbers of ratings."""

    def sample(size: int, rng: np.random.Generator) -> Arrays:
        inputs: Arrays = {"items": rng.permutation(items)[:size]}
        return inputs if paper else {**inputs, "values": rng.random(len(inputs["items"]))}

    axes = {"items": {0: "ratings"}} if paper else {"items": {0: "ratings"}, "values": {0: "ratings"}}
    return ExportableNetwork(module, axes, sample, "shares")
