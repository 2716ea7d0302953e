"""Best evaluated round by the task's objective, and the end of a run without further gains."""

import math

from server.events import Metrics, Split
from server.result import Best


class BestRound:
    """Best round among those whose metrics may select a model.

    Args:
        metric: Metric of the objective.
        higher_is_better: True if higher values are better.
        stop: Number of rounds without a gain after which the run ends; 0: never.
        min_delta: Minimum gain, in the unit of the metric.

    Attributes:
        best: Best round so far.
        newest: Newest round with such metrics; 0 before the first.
    """

    def __init__(self, metric: str, higher_is_better: bool, stop: int = 0, min_delta: float = 0.0) -> None:
        self._metric, self._sign = metric, 1.0 if higher_is_better else -1.0
        self._stop, self._min_delta = stop, min_delta
        self._reference: float | None = None
        self._highest = -math.inf
        self._improved = self.newest = 0
        self.best: Best | None = None

    def compare(self, number: int, metrics: Metrics, split: Split, selection: float = math.nan) -> bool:
        """Record a round; return True if it is the best so far. Metrics of test data never select.

        `selection` is the value that counts in place of the metric's mean; NaN: the mean counts.
        """
        if self._metric not in metrics or split == "test":
            return False
        value, self.newest = self._sign * (metrics[self._metric] if math.isnan(selection) else selection), number
        if self._reference is None or value - self._reference > self._min_delta:
            self._reference, self._improved = value, number
        if self.best is not None and value <= self._highest:
            return False
        self._highest = value
        self.best = Best(round=number, metrics=dict(metrics), split=split)
        return True

    def reason_to_stop(self) -> str:
        """Return the reason why the run ends now; empty if it continues."""
        if not self._stop or self.newest - self._improved < self._stop:
            return ""
        return (
            f"{self._metric} on validation data has not improved for {self.newest - self._improved} rounds,"
            f" since round {self._improved} (--patience {self._stop})"
        )
