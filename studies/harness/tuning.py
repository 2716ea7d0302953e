"""Tuning: choice of a point of a grid on validation data of a seed that is not reported."""

from dataclasses import dataclass, field

from studies.harness.experiment import TUNING_SEED, Settings
from studies.harness.row import Metrics


@dataclass(frozen=True)
class Tuning:
    """Choice of a point of a grid on validation data.

    Args:
        metric: Validation metric that decides.
        settings: Further configuration of tuning runs.
        higher_is_better: True if larger values are better.
        chooses_round: True if the round to stop at is chosen too.
        seed: Seed of tuning runs.
        protocol: Protocol under which all rows are tuned; empty for their own.
    """

    metric: str
    settings: Settings = field(default_factory=dict)
    higher_is_better: bool = False
    chooses_round: bool = False
    seed: int = TUNING_SEED
    protocol: str = ""

    def best_of(self, curve: dict[int, Metrics]) -> Metrics:
        """Return the validation metric of a point, with its round if that is tuned; empty without a curve."""
        if not curve:
            return {}
        if not self.chooses_round:
            return {self.metric: curve[max(curve)][self.metric]}
        best = min(sorted(curve), key=lambda number: self.loss(curve[number]))
        return {self.metric: curve[best][self.metric], "round": best}

    def loss(self, metrics: Metrics) -> float:
        """Return the metric with the sign that makes lower better."""
        return -metrics[self.metric] if self.higher_is_better else metrics[self.metric]
