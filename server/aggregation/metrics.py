"""Means of the metrics that clients report, and sums of the differences between two models; pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from operator import add
from statistics import median, median_low

import numpy as np

from common.arrays import Array, total_of
from common.contribution import MAX_PLAUSIBLE
from common.metrics import power_of
from common.tasks.spec import ALONE_PREFIX
from common.text import count, printable
from common.wire.messages import EvaluateReply, Metrics


@dataclass(frozen=True, kw_only=True)
class MetricSum:
    """Secure sum whose plain means over clients are the metrics of a model.

    Args:
        clients: Number of clients in the sum.
        noise: Standard deviation of the noise on a mean, as a share of its metric's range; 0 without noise.
    """

    clients: int
    noise: float = 0.0


MAX_UNITS, MAX_SUM = 1e9, 1e15
"""Largest accepted number of units of one client, and magnitude of its sums."""

MIN_LIMITED, MAX_RATIO = 5, 10.0
"""Clients from which the units of one are limited, and the limit as a multiple of the median."""


@dataclass(frozen=True)
class PairedSums:
    """Sums over units of differences d.

    Args:
        units: Number n of units.
        total: Σd.
        squares: Σd².
        wins: Number of units that do better by the first model.
        losses: Number of units that do worse.
    """

    units: int = 0
    total: float = 0.0
    squares: float = 0.0
    wins: int = 0
    losses: int = 0

    def __add__(self, other: "PairedSums") -> "PairedSums":
        """Return the sums over the units of both."""
        return PairedSums(*map(add, astuple(self), astuple(other)))

    @property
    def mean(self) -> float | None:
        """Mean of d; None without units."""
        return self.total / self.units if self.units else None

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean of d; None below two units."""
        if self.units < 2:
            return None
        variance = max(self.squares - self.total**2 / self.units, 0.0) / (self.units - 1)
        return math.sqrt(variance / self.units)


def pool_sums(reports: Iterable[Array]) -> PairedSums:
    """Return the sums over clients; reports that no client can have measured are left out.

    From five clients with units on, one with over ten times their median number counts as one with ten times it.
    """
    plausible = list(filter(is_plausible, reports))
    units = [float(report[0]) for report in plausible if report[0]]
    limit = MAX_RATIO * median(units) if len(units) >= MIN_LIMITED else math.inf
    pooled = PairedSums()
    for report in plausible:
        n, total, squares, wins, losses = (report * min(1.0, limit / max(report[0], 1.0))).tolist()
        pooled += PairedSums(round(n), total, squares, round(wins), round(losses))
    return pooled


def is_plausible(report: Array) -> bool:
    """Return True if the report has five finite sums that some units can have."""
    if report.shape != (5,) or report.dtype.kind != "f" or not np.isfinite(report).all():
        return False
    n, total, squares, wins, losses = (float(value) for value in report)
    if any(count < 0 or count != int(count) for count in (n, wins, losses)) or not wins + losses <= n <= MAX_UNITS:
        return False
    return abs(total) <= MAX_SUM and squares <= MAX_SUM and squares * n >= total**2 * (1 - 1e-9)


LOSS = "loss"
"""Metric that every task with a loss reports under this key."""

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
    """Metrics of models that clients trained alone, without the prefix."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Client -> note on its metrics that are non-finite or implausible; they are left out."""
    diverged: frozenset[str] = frozenset()
    """Clients that reported a loss which is non-finite or implausible."""
    summed: MetricSum | None = None
    """Secure sum that the metrics are plain means of; None for means of single replies."""

    @property
    def sharing(self) -> set[str]:
        """Clients that sent metrics in plaintext."""
        measured = {name for name, metrics in self.clients.items() if metrics}
        return set() if self.summed else measured | self.dropped.keys()

    def values_of(self, name: str) -> dict[str, WeightedValue]:
        """Return each client's value and weight of a metric.

        Implausible values and values without weight are omitted: a home whose test rules are of one class has no AUC.
        In means of a secure sum, all clients stand for one, without a name.
        """
        if self.summed:
            return {"": (self.metrics[name], 1.0)} if name in self.metrics else {}
        reported = {c: (m[name], self.weights.get(c, {}).get(name, 0.0)) for c, m in self.clients.items() if name in m}
        return {c: (v, w) for c, (v, w) in reported.items() if abs(v) <= MAX_PLAUSIBLE and 0 < w <= MAX_PLAUSIBLE}

    @cached_property
    def median_loss(self) -> float:
        """Lower median of the clients' losses; NaN without losses, infinite if most of them are not finite."""
        values = [value for value, _ in self.values_of(LOSS).values()]
        if len(self.diverged) > len(values):
            return math.inf
        return median_low(values) if values else math.nan

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
    diverged = frozenset(client for client, names in dropped.items() if LOSS in names)
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
    power, total = power_of(name), total_of(weight for _, weight in values.values())
    mean = total_of(weight * value**power for value, weight in values.values()) / total
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
    remaining, limited = trim({client: value for client, (value, _) in values.items()}), limit_weights(values)
    return pool(name, {client: limited[client] for client in sorted(remaining)})
