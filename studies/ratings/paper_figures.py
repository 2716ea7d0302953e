"""Figures of the paper, and the guarantee of its accounting.

See algorithms.md §4.7 and §4.8, and explore-ratings.md §2.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.privacy.accounts import epsilon_of

DELTA = 1e-5
BUDGET = 10.0
"""B of the authors, spent as Rényi divergence of order 2."""

ORDER = 2
TENSORS = 4
"""Parameters of the attention layer, each clipped and noised apart from the item rows."""


@dataclass(frozen=True)
class Entry:
    """Row of Table II: RMSE and F1 under Gaussian and Laplace noise, NaN where it has none."""

    method: str
    gaussian: tuple[float, float]
    laplace: tuple[float, float]


NONE = (math.nan, math.nan)

TABLE_II: dict[str, tuple[Entry, ...]] = {
    "ml": (
        Entry("FedSGD (no noise)", (0.2017, 0.9018), NONE),
        Entry("DPSGD", (0.3356, 0.6412), NONE),
        Entry("ADPML", (0.3442, 0.6358), (0.3815, 0.6404)),
        Entry("ADAP", (0.3553, 0.6366), (0.4092, 0.6312)),
        Entry("BGTplanner", (0.3223, 0.6444), (0.3449, 0.6421)),
    ),
    "ft": (
        Entry("FedSGD (no noise)", (0.2905, 0.8354), NONE),
        Entry("DPSGD", (0.4093, 0.6680), NONE),
        Entry("ADPML", (0.3898, 0.6395), (0.4258, 0.6338)),
        Entry("ADAP", (0.3970, 0.6389), (0.4435, 0.6194)),
        Entry("BGTplanner", (0.3746, 0.6685), (0.4114, 0.6517)),
    ),
}


def true_rho(rows: float) -> float:
    """Return ρ of a client of so many item rows.

    Every row and every tensor spends the whole B, ρ = B/α each. The number of rows is that of all
    ratings if they are present from the first round, else that of `arriving`.
    """
    return BUDGET / ORDER * (rows + TENSORS)


def true_epsilon(rows: float) -> float:
    """Return ε at δ = 1e-5 of the same cost; it does not cover the ids of the rows."""
    return epsilon_of(true_rho(rows), DELTA)


def pure_epsilon(rows: float) -> float:
    """Return ε of a client of so many item rows under Laplace noise.

    Every row and every tensor spends the whole B.
    """
    return BUDGET * (rows + TENSORS)


def mean_rows(rows: float, rounds: int) -> float:
    """Return the mean number of present rows over the rounds if ratings arrive one by one.

    `client.tasks.ratings.data.split.arrived` describes the arrival.

    A row is noised once it is present, so a client that spends B evenly spends it on this number of rows.
    """
    return rows * (3 * rounds + 1) / (4 * rounds)


def claimed_epsilon() -> float:
    """Return ε of B as one release, as if a client sent a single row."""
    return epsilon_of(BUDGET / ORDER, DELTA)


def rows_of(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean and the largest number of item rows, over clients that have any."""
    some = counts[counts > 0]
    return float(some.mean()), float(some.max())
