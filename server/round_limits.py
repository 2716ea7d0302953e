"""Limits of a round: quorum, deadline and patience."""

from dataclasses import dataclass

GRACE_SECONDS = 1.0  # added to the time of stragglers, which a very fast quorum would otherwise exclude


@dataclass(frozen=True)
class RoundLimits:
    """Quorum and time limits of a round.

    Args:
        min_replies: Usable replies that make a round count.
        deadline: Seconds after which the round ends in any case.
        patience: Factor p; after a quorum at t seconds the remaining clients have p · t + 1 seconds more.
    """

    min_replies: int
    deadline: float
    patience: float

    def __post_init__(self) -> None:
        """Refuse limits under which no round could count."""
        if self.min_replies < 1 or self.deadline <= 0 or self.patience < 0:
            raise ValueError(f"need min_replies >= 1, deadline > 0 and patience >= 0, not {self}")

    def end_after_quorum(self, elapsed: float) -> float:
        """Return the end of a round whose quorum is met after `elapsed` seconds, in seconds from its start."""
        return elapsed * (1 + self.patience) + GRACE_SECONDS
