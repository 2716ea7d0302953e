"""Explosion of the validation loss, by which a step is taken back."""

import math
from collections import deque
from statistics import median_low

from server.evaluation import Evaluation

LOSS = "loss"
"""Metric that every task with a loss reports under this key."""

EXPLOSION = 1000.0
"""Factor on the largest of the last losses above which a step counts as ruinous.

Honest clients that overfit between two rounds raised it 70-fold, and it fell again by itself.
"""

RECENT_LOSSES = 5


class LossWatch:
    """Losses of the last evaluations: lower medians over the clients, which no single one decides."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=RECENT_LOSSES)
        self._first = math.inf

    def record(self, loss: float) -> None:
        """Record the loss of an accepted step; NaN if there is none."""
        if math.isfinite(loss):
            self._first = loss if math.isinf(self._first) else self._first
            self._recent.append(loss)

    def find_explosion(self, evaluation: Evaluation) -> str:
        """Return how far the loss exploded; empty if it did not.

        It did if it is worse than at the start and many times the last losses, or if most clients cannot compute it.
        """
        loss, reference = median_loss(evaluation), max(self._recent, default=math.inf)
        if math.isnan(loss) or loss <= max(EXPLOSION * reference, self._first):
            return ""
        return f"the validation loss rose from {reference:.3g} to {loss:.3g}"


def median_loss(evaluation: Evaluation) -> float:
    """Return the lower median of the clients' losses; NaN without losses.

    It is infinite if most of them are not finite.
    """
    values = [value for value, _ in evaluation.values_of(LOSS).values()]
    if len(evaluation.diverged) > len(values):
        return math.inf
    return median_low(values) if values else math.nan
