"""Secure sum behind the metrics of a model."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MetricSum:
    """Secure sum whose plain means over clients are the metrics of a model.

    Args:
        clients: Number of clients in the sum.
        noise: Standard deviation of the noise on a mean, as a share of its metric's range; 0 without noise.
    """

    clients: int
    noise: float = 0.0
