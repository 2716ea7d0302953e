"""Weighing what clients measured; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from common.wire.messages import EvaluateReply, Metrics

Told = tuple[float, float]
"""A client's metric, and its weight."""

PLAUSIBLE = 1e100
"""Largest metric and weight that are believed: sums of their squares and products are numbers still."""


@dataclass(frozen=True)
class Evaluation:
    """Metrics over all clients, and each client's own."""

    metrics: Metrics
    clients: dict[str, Metrics]
    notes: Metrics = field(default_factory=dict)
    """What else is to be said of the round that was evaluated."""
    weights: dict[str, Metrics] = field(default_factory=dict)
    """Client -> the number of records that each of its metrics is the mean of."""

    def told(self, name: str) -> dict[str, Told]:
        """What each client told of a metric.

        One that is not plausible, or has no weight, is left out (a home whose test rules are of one class has no AUC).
        """
        found = {c: (m[name], self.weights.get(c, {}).get(name, 0.0)) for c, m in self.clients.items() if name in m}
        return {c: (value, w) for c, (value, w) in found.items() if abs(value) <= PLAUSIBLE and 0 < w <= PLAUSIBLE}


def summarise(replies: Mapping[str, EvaluateReply]) -> Evaluation:
    """Every metric over all clients, see `pooled`, and each client's own."""
    replies = dict(sorted(replies.items()))
    clients = {client: dict(reply.metrics) for client, reply in replies.items()}
    found = Evaluation({}, clients, weights={client: dict(reply.weights) for client, reply in replies.items()})
    names = dict.fromkeys(name for metrics in clients.values() for name in metrics)
    return replace(found, metrics={name: pooled(name, told) for name in names if (told := found.told(name))})


def pooled(name: str, told: Mapping[str, Told]) -> float:
    """Σ w_k m_k / Σ w_k of a metric over those clients, at least one; of RMSEs, of their squares."""
    power, total = _power(name), sum(weight for _, weight in told.values())
    mean = sum(weight * value**power for value, weight in told.values()) / total
    return float(mean ** (1 / power))


def _power(name: str) -> int:
    """2 for root mean squares, which pool as their squares."""
    return 2 if "rmse" in name.split("_") else 1
