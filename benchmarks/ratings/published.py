"""What the paper printed, and what its accounting really promises (algorithms.md §4.7, §4.8; explore-ratings.md §2)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.privacy.zcdp import epsilon_of

DELTA = 1e-5
BUDGET = 10.0
"""B of the authors, spent as Rényi divergence of order 2."""

ORDER = 2
TENSORS = 4
"""Parameters of the attention layer, each clipped and noised apart from the item rows."""


@dataclass(frozen=True)
class Entry:
    """A line of Table II: RMSE and F1 under Gaussian and Laplace noise, NaN where it has none."""

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
    """ρ of a client of so many item rows: every row and every tensor spends the whole B as its own, ρ = B/α each.

    With all ratings there from the first round, as in the spec; else of what `arriving` makes of them.
    """
    return BUDGET / ORDER * (rows + TENSORS)


def true_epsilon(rows: float) -> float:
    """ε at δ = 1e-5 of the same; the ids of the rows are not covered even by that."""
    return epsilon_of(true_rho(rows), DELTA)


def pure_epsilon(rows: float) -> float:
    """ε of a client of so many item rows under Laplace noise: the whole B for every row and every tensor."""
    return BUDGET * (rows + TENSORS)


def arriving(rows: float, rounds: int) -> float:
    """Mean over the rounds of how many rows are there where ratings arrive (`client.tasks.ratings.data.split.arrived`).

    A row is noised once it is there, so this is what a client spends on that spends B evenly.
    """
    return rows * (3 * rounds + 1) / (4 * rounds)


def claimed_epsilon() -> float:
    """ε of B as one release: what the accounting would promise if a client sent a single row."""
    return epsilon_of(BUDGET / ORDER, DELTA)


def rows_of(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Mean and largest number of item rows, over clients that have any."""
    some = counts[counts > 0]
    return float(some.mean()), float(some.max())
