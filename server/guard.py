"""Memory of the checks on clients' replies, part of a run's state; pure."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from common.reply_lengths import Lengths

RECENT_ROUNDS = 5
"""Number of last rounds whose lengths are stored."""


@dataclass(frozen=True)
class RoundLengths:
    """Typical lengths of a round's replies; `noise` names its privacy cost and clip norm."""

    noise: str
    lengths: Lengths


@dataclass(frozen=True)
class Guard:
    """Memory of the checks on replies."""

    recent: tuple[RoundLengths, ...] = ()
    """The last rounds, oldest first."""
    excluded: dict[str, int] = field(default_factory=dict)
    """Client -> last round in which it sits out."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Client of a small federation -> number of replies in a row that were left out as too long."""

    def past(self, noise: str) -> list[Lengths]:
        """Return the lengths of the last rounds with equal noise, since noise decides on the length."""
        return [one.lengths for one in self.recent if one.noise == noise]

    def record(self, noise: str, lengths: Lengths) -> "Guard":
        """Return the memory after a round with these typical lengths."""
        return replace(self, recent=(*self.recent, RoundLengths(noise, lengths))[-RECENT_ROUNDS:]) if lengths else self

    def count(self, left_out: Collection[str], accepted: Collection[str]) -> "Guard":
        """Return the memory after replies of a small federation were left out as too long or accepted."""
        counts = {client: n for client, n in self.left_out.items() if client not in accepted}
        return replace(self, left_out=counts | {client: counts.get(client, 0) + 1 for client in left_out})

    def exclude(self, clients: Collection[str], last_round: int) -> "Guard":
        """Return the memory after clients were excluded up to a round; a longer penalty stays."""
        longest = {client: max(last_round, self.excluded.get(client, 0)) for client in clients}
        return replace(self, excluded={**self.excluded, **longest}) if clients else self

    def sits_out(self, client: str, number: int) -> bool:
        """Return True if the client is not asked in a round."""
        return number <= self.excluded.get(client, 0)
