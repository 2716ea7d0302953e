"""Training results of a round, as a strategy sees them: single replies, or sums alone. Pure, NumPy."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from common.arrays import Arrays, group, mean, scale
from common.errors import ConfigError
from common.reply_lengths import Lengths
from common.wire.messages import TrainReply
from server.aggregation import fednova
from server.aggregation.fedga_sums import Share, Sums, fold
from server.aggregation.row_mean import Rows

Rate = Callable[[str], float]
"""Learning rate of a parameter, by its name."""

Load = Callable[[], Arrays]
"""Returns stored arrays; each call reads those on disk anew."""


@dataclass(frozen=True)
class Reply:
    """Valid training reply of a client.

    Args:
        client: Name of the client.
        weight: Weight in means.
        train: Reply with full tables, or with their gathered rows in runs whose local steps gather rows.
        rows: Row ids in the reply, in runs whose clients send them; empty if missing rows are zeros.
        lengths: Norms of its arrays.
        stored: Arrays of `train` by field, which then has none itself; None if `train` has them.
    """

    client: str
    weight: float
    train: TrainReply
    rows: Rows = field(default_factory=dict)
    lengths: Lengths = field(default_factory=dict)
    stored: Mapping[str, Load] | None = None

    @property
    def update(self) -> Arrays:
        """Δ_k; a stored one is read anew."""
        return self.train.update if self.stored is None else self.stored["update"]()

    @property
    def gradient(self) -> Arrays:
        """s_k; a stored one is read anew."""
        return self.train.gradient if self.stored is None else self.stored["gradient"]()


class Collected(Protocol):
    """Training results of a round. A method with the capability `sum_only` uses all but `replies`."""

    @property
    def names(self) -> list[str]:
        """Names of the clients, in order."""

    @property
    def steps(self) -> Mapping[str, int]:
        """Client -> number τ_k of its local steps."""

    @property
    def replies(self) -> list[Reply]:
        """Single replies, in the order of client names; secure sums have none."""

    def mean_update(self) -> Arrays:
        """Return Δ̄, the weighted mean of the updates, corrected for different numbers of local steps."""

    def mean_gradient(self) -> Arrays:
        """Return s̄, the weighted mean of the gradients that clients send."""

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the weighted mean of Δ_k/(ητ_k), with η the `rate` of a parameter."""

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ', the weighted mean of |Δ_k|, over the same weights: |Δ̄| ≤ Δ' in every number."""


@dataclass(frozen=True)
class Replies:
    """Single replies of a round.

    Args:
        replies: Replies in the order of client names.
        per_step: True if means are of updates per local step.
        tables: Model whose tables the updates may hold as rows; None if all updates have full tables.
    """

    replies: list[Reply]
    per_step: bool = True
    tables: Arrays | None = None

    @property
    def names(self) -> list[str]:
        """Names of the clients, in order."""
        return [reply.client for reply in self.replies]

    @property
    def steps(self) -> Mapping[str, int]:
        """Client -> number τ_k of its local steps."""
        return {reply.client: reply.train.steps for reply in self.replies}

    def mean_update(self) -> Arrays:
        """Return Δ̄."""
        if self.tables is not None:
            return self._sums().mean()
        updates = (reply.update for reply in self.replies)
        return (
            fednova.mean_update(updates, [*self.steps.values()], self._weights)
            if self.per_step
            else self._mean(updates)
        )

    def mean_gradient(self) -> Arrays:
        """Return s̄."""
        return self._mean(reply.gradient for reply in self.replies)

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the weighted mean of Δ_k/(ητ_k)."""
        return self._mean(
            {n: (u / (rate(n) * reply.train.steps)).astype(u.dtype) for n, u in reply.update.items()}
            for reply in self.replies
        )

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ'."""
        sums = self._sums()
        return sums.mean(), sums.magnitude()

    def _sums(self) -> Sums:
        shares = (Share(reply.update, reply.train.steps, reply.weight) for reply in self.replies)
        return fold(shares, self.tables)

    @property
    def _weights(self) -> list[float]:
        return [reply.weight for reply in self.replies]

    def _mean(self, members: Iterable[Arrays]) -> Arrays:
        return mean(members, self._weights)


@dataclass(frozen=True)
class Opened:
    """Means over the clients of a secure sum; no client's own reply is known.

    Args:
        names: Names of the clients, in order.
        steps: Client -> number τ_k of its local steps.
        means: Means of the blocks: `update/name` of (τ/τ_k)·Δ_k, or of Δ_k if means are not per step, and `gradient/name`,
            `absolute/name` if the method needs them.
        configured_steps: τ, the configured number of local steps.
        per_step: True if means are of updates per local step.
    """

    names: list[str]
    steps: Mapping[str, int]
    means: Arrays
    configured_steps: int
    per_step: bool = True

    @property
    def replies(self) -> list[Reply]:
        """Single replies, which a sum does not have.

        Raises:
            ConfigError: Always; methods without the capability `sum_only` are refused before a run.
        """
        raise ConfigError("this method needs single replies; set privacy.trust=local")

    def mean_update(self) -> Arrays:
        """Return Δ̄."""
        return scale(group("update", self.means), self._mean_steps / self.configured_steps)

    def mean_gradient(self) -> Arrays:
        """Return s̄."""
        return group("gradient", self.means)

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the mean of Δ_k/(ητ_k)."""
        update = group("update", self.means)
        return {name: (u / (rate(name) * self.configured_steps)).astype(u.dtype) for name, u in update.items()}

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ'."""
        return self.mean_update(), scale(group("absolute", self.means), self._mean_steps / self.configured_steps)

    @property
    def _mean_steps(self) -> float:
        """Mean τ̄ of the local steps; τ if means are not per step."""
        return sum(self.steps.values()) / len(self.steps) if self.per_step and self.steps else self.configured_steps
