"""Weighted means of the metrics that clients report; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from common.metrics.spec import power_of
from common.reply_lengths import MAX_PLAUSIBLE
from common.tasks.comparison import ALONE_PREFIX
from common.text import count, printable
from common.wire.messages import EvaluateReply, Metrics
from server.metric_sum import MetricSum
from server.paired_sums import PairedSums, pool_sums

WeightedValue = tuple[float, float]
"""Metric of a client, and its weight."""

MIN_TRIMMED, TRIMMED_SHARE, MAX_WEIGHT_RATIO = 5, 0.1, 10.0
"""Clients from which means are trimmed and weights limited, trimmed share, largest relative weight."""


@dataclass(frozen=True)
class Evaluation:
    """Metrics over all clients, and those of each client."""

    metrics: Metrics
    clients: dict[str, Metrics]
    notes: Metrics = field(default_factory=dict)
    """Further numbers on the evaluated round."""
    weights: dict[str, Metrics] = field(default_factory=dict)
    """Client -> number of records behind each of its metrics."""
    paired: dict[str, PairedSums] = field(default_factory=dict)
    """Baseline -> differences to it over the units of all clients; for the final model."""
    alone: Metrics = field(default_factory=dict)
    """Metrics of models that clients trained alone, and the number of their rounds, without the prefix."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Client -> note on its metrics that are non-finite or implausible; they are left out."""
    diverged: frozenset[str] = frozenset()
    """Clients that reported a loss which is non-finite or implausible."""
    summed: MetricSum | None = None
    """Secure sum that the metrics are plain means of; None for means of single replies."""

    @property
    def sharing(self) -> set[str]:
        """Clients that sent metrics in plaintext."""
        return set() if self.summed else {name for name, own in self.clients.items() if own} | self.dropped.keys()

    def values_of(self, name: str) -> dict[str, WeightedValue]:
        """Return each client's value and weight of a metric.

        Implausible values and values without weight are omitted: a home whose test rules are of one class has no AUC.
        In means of a secure sum, all clients stand for one, without a name.
        """
        if self.summed:
            return {"": (self.metrics[name], 1.0)} if name in self.metrics else {}
        reported = {c: (m[name], self.weights.get(c, {}).get(name, 0.0)) for c, m in self.clients.items() if name in m}
        return {
            c: (value, w)
            for c, (value, w) in reported.items()
            if abs(value) <= MAX_PLAUSIBLE and 0 < w <= MAX_PLAUSIBLE
        }

    def selection(self, name: str) -> float:
        """Return the trimmed mean of a metric, which chooses a model; NaN for fewer than five clients."""
        values = self.values_of(name)
        return pool_trimmed(name, values) if len(values) >= MIN_TRIMMED else math.nan


def summarize(replies: Mapping[str, EvaluateReply]) -> Evaluation:
    """Return every metric over all clients (see `pool` and `limit_weights`), and those of each client."""
    replies = dict(sorted(replies.items()))
    clients = {client: _plausible(reply.metrics) for client, reply in replies.items()}
    weights = {client: dict(reply.weights) for client, reply in replies.items()}
    dropped = {client: sorted(reply.metrics.keys() - clients[client].keys()) for client, reply in replies.items()}
    notes = {client: _note(replies[client].metrics, names) for client, names in dropped.items() if names}
    baselines = dict.fromkeys(key for reply in replies.values() for key in reply.paired)
    paired = {key: pool_sums(r.paired[key] for r in replies.values() if key in r.paired) for key in baselines}
    diverged = frozenset(client for client, names in dropped.items() if "loss" in names)
    reported = Evaluation({}, clients, weights=weights, dropped=notes, paired=paired, diverged=diverged)
    names = dict.fromkeys(name for metrics in clients.values() for name in metrics)
    values = {name: limit_weights(reported.values_of(name)) for name in names}
    alone, metrics = split_alone({name: pool(name, v) for name, v in values.items() if v})
    clients = {client: split_alone(reported)[1] for client, reported in clients.items()}
    return replace(reported, metrics=metrics, clients=clients, alone=alone)


def split_alone(metrics: Metrics) -> tuple[Metrics, Metrics]:
    """Return the metrics of models trained alone, without their prefix, and the other metrics."""
    alone = {name for name in metrics if name.startswith(ALONE_PREFIX)}
    return (
        {name.removeprefix(ALONE_PREFIX): metrics[name] for name in metrics if name in alone},
        {name: value for name, value in metrics.items() if name not in alone},
    )


def _plausible(metrics: Metrics) -> Metrics:
    return {name: value for name, value in metrics.items() if abs(value) <= MAX_PLAUSIBLE}


def _note(metrics: Metrics, names: Sequence[str]) -> str:
    """Return which metrics were left out, with the first value."""
    rest = f" and {count(len(names) - 1, 'further metric')}" if len(names) > 1 else ""
    return f"{printable(names[0], 40)} = {metrics[names[0]]:g}{rest} left out"


def pool(name: str, values: Mapping[str, WeightedValue]) -> float:
    """Return Σ w_k m_k / Σ w_k of a metric over at least one client; an RMSE is averaged by its squares."""
    power, total = power_of(name), sum(weight for _, weight in values.values())
    mean = sum(weight * value**power for value, weight in values.values()) / total
    return float(mean ** (1 / power))


def trim(values: Mapping[str, float]) -> set[str]:
    """Return the clients without the tenth, at least one, of lowest and of highest values.

    Below five clients, all remain.
    """
    if len(values) < MIN_TRIMMED:
        return set(values)
    cut = max(1, int(TRIMMED_SHARE * len(values)))
    ordered = sorted(values, key=lambda client: (values[client], client))
    return set(ordered[cut : len(ordered) - cut])


def limit_weights(values: Mapping[str, WeightedValue]) -> dict[str, WeightedValue]:
    """Return the values; from five clients on, none weighs over ten times the median."""
    if len(values) < MIN_TRIMMED:
        return dict(values)
    limit = MAX_WEIGHT_RATIO * median(weight for _, weight in values.values())
    return {client: (value, min(weight, limit)) for client, (value, weight) in values.items()}


def pool_trimmed(name: str, values: Mapping[str, WeightedValue]) -> float:
    """Return the mean of `pool` over trimmed clients of limited weights."""
    kept, limited = trim({client: value for client, (value, _) in values.items()}), limit_weights(values)
    return pool(name, {client: limited[client] for client in sorted(kept)})
