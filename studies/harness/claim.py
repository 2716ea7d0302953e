"""Claims of a results page: comparisons paired by seed, and verdicts from the stored numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from common.text import count
from studies.harness.row import Row, mean_sd


@dataclass(frozen=True)
class Claim:
    """A statement on a measured value, and whether the value satisfies it."""

    text: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.text}, {verdict(self.holds)}."


@dataclass(frozen=True)
class Comparison:
    """Two rows on one metric, over the seeds that both have.

    Args:
        first: Values of the first row, seed by seed.
        second: Values of the second row, on the same seeds.
        higher_is_better: True if larger values are better.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    higher_is_better: bool = False

    @property
    def differences(self) -> tuple[float, ...]:
        """First minus second, seed by seed."""
        return tuple(a - b for a, b in zip(self.first, self.second, strict=True))

    @property
    def mean(self) -> float:
        """Mean difference."""
        return fmean(self.differences)

    @property
    def deviation(self) -> float:
        """Standard deviation of the differences; 0 with a single seed."""
        return stdev(self.differences) if len(self.differences) > 1 else 0.0

    @property
    def seeds(self) -> int:
        """Number of seeds that both rows have."""
        return len(self.first)

    @property
    def won(self) -> int:
        """Number of seeds in which the first row is better."""
        sign = 1 if self.higher_is_better else -1
        return sum(sign * difference > 0 for difference in self.differences)

    def text(self, digits: int = 3) -> str:
        """Return mean difference, its standard deviation and share of seeds: `−0.364 ± 0.041, 5/5`.

        The share counts seeds in which the first row is better.
        """
        deviation = f" ± {self.deviation:.{digits}f}" if self.seeds > 1 else ""
        return f"{self.mean:+.{digits}f}{deviation}, {self.won}/{self.seeds}".replace("-", "−")

    def sentence(self, metric: str, digits: int = 3) -> str:
        """Return `lower loss in 5 of 5 seeds (0.159 ± 0.039 against 0.490 ± 0.019)`."""
        word = "higher" if self.higher_is_better else "lower"
        means = " against ".join(mean_sd(values, digits) for values in (self.first, self.second))
        return f"{word} {metric} in {self.won} of {count(self.seeds, 'seed')} ({means})"


def compare(
    first: Row, second: Row, metric: str, client: str = "", *, higher_is_better: bool = False
) -> Comparison | None:
    """Compare two rows where both were measured; None if they share no seed."""
    ours, others = first.values(metric, client), second.values(metric, client)
    seeds = sorted(ours.keys() & others.keys())
    if not seeds:
        return None
    return Comparison(tuple(ours[s] for s in seeds), tuple(others[s] for s in seeds), higher_is_better)


def verdict(holds: bool) -> str:
    """Return the verdict on a claim, as pages print it."""
    return "holds" if holds else "**does not hold**"


def bullet_list(sentences: Iterable[str]) -> str:
    """Return sentences as a Markdown list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)
