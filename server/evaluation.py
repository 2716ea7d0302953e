"""Weighing what clients measured; pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from common.wire.messages import EvaluateReply, Metrics


@dataclass(frozen=True)
class Evaluation:
    """Metrics over all clients, and each client's own."""

    metrics: Metrics
    clients: dict[str, Metrics]
    notes: Metrics = field(default_factory=dict)
    """What else is to be said of the round that was evaluated."""


def summarise(replies: Mapping[str, EvaluateReply]) -> Evaluation:
    """Σ w_k m_k / Σ w_k of every metric, with w_k the number of records it is client k's mean of; of RMSEs, of their squares.

    A metric that is not finite, or has no weight, at a client is left out there (a home whose test rules are of one class
    has no AUC).
    """
    sums: dict[str, float] = {}
    totals: dict[str, float] = {}
    for _, reply in sorted(replies.items()):
        for name, value in reply.metrics.items():
            weight = reply.weights.get(name, 0.0)
            if math.isfinite(value) and 0 < weight < math.inf:
                sums[name] = sums.get(name, 0.0) + weight * value ** _power(name)
                totals[name] = totals.get(name, 0.0) + weight
    return Evaluation(
        metrics={name: (total / totals[name]) ** (1 / _power(name)) for name, total in sums.items()},
        clients={name: dict(reply.metrics) for name, reply in sorted(replies.items())},
    )


def _power(name: str) -> int:
    """2 for root mean squares, which pool as their squares."""
    return 2 if "rmse" in name.split("_") else 1
