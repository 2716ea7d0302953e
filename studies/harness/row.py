"""Row of a study's tables: the trials of one experiment or baseline, seed by seed."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple, Self

from studies.harness.experiment import Settings

Metrics = dict[str, float]

NO_SEED = -1
"""Seed of results that belong to a data set instead of a run."""


class RowKey(NamedTuple):
    """Place of a row: data set, protocol and short name."""

    set: str
    protocol: str
    row: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True)
class Trial:
    """Results of one training or one baseline on one seed.

    Args:
        metrics: After the last round, mean over clients.
        curve: Round -> metrics of the global model.
        clients: Client -> metrics after the last round.
        seconds: Wall time.
        megabytes: Sent and received by all clients.
        failure: Reason why there are no metrics; empty if there are.
        config: Flat configuration of the run.
    """

    metrics: Metrics = field(default_factory=dict)
    curve: dict[int, Metrics] = field(default_factory=dict)
    clients: dict[str, Metrics] = field(default_factory=dict)
    seconds: float = 0.0
    megabytes: float = 0.0
    failure: str = ""
    config: Settings = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Return the trial that `to_json` wrote."""
        curve = {int(number): metrics for number, metrics in document["curve"].items()}
        return cls(**{**document, "curve": curve})


@dataclass
class About:
    """Description of a row: title, configuration, tuning and cost.

    Args:
        title: Name in the tables.
        config: Flat configuration of its runs, without the seed.
        chosen: Tuned point, and the round to stop at where that is tuned too.
        grid: Point -> best validation metrics; empty metrics where training failed.
        seconds: Seed -> wall time, or `mean` -> their mean.
        megabytes: Seed -> megabytes sent and received by all clients, or `mean` -> their mean.
        failures: Seed -> reason of a failed run.
        versions: Package -> version, if others than those of the whole file.
        made: Time of the last run, if later than that of the whole file.
    """

    title: str = ""
    config: Settings = field(default_factory=dict)
    chosen: dict[str, str | int] = field(default_factory=dict)
    grid: dict[str, Metrics] = field(default_factory=dict)
    seconds: Metrics = field(default_factory=dict)
    megabytes: Metrics = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    made: str = ""


@dataclass
class Row:
    """Trials of one row of a table."""

    key: RowKey
    about: About = field(default_factory=About)
    trials: dict[int, Trial] = field(default_factory=dict)
    """Seed -> trial; failed ones are in `about.failures`."""

    @property
    def title(self) -> str:
        """Name in the tables."""
        return self.about.title

    @property
    def only(self) -> Metrics:
        """Metrics of a row that has a single trial."""
        (trial,) = self.trials.values()
        return trial.metrics

    def values(self, metric: str, client: str = "") -> dict[int, float]:
        """Return seed -> metric where present: of one client, or by default the mean over clients."""
        metrics = {s: t.clients.get(client, {}) if client else t.metrics for s, t in sorted(self.trials.items())}
        return {seed: found[metric] for seed, found in metrics.items() if metric in found}

    def mean(self, metric: str, client: str = "") -> float:
        """Return the mean over seeds; NaN without any."""
        return mean(self.values(metric, client).values())


def in_order(rows: Mapping[str, Row], keys: Iterable[str]) -> dict[str, Row]:
    """Return the rows of those keys that exist, in this order."""
    return {key: rows[key] for key in keys if key in rows}


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN without values."""
    numbers = list(values)
    return fmean(numbers) if numbers else float("nan")


def mean_sd(values: Iterable[float], digits: int, scale: float = 1.0, *, shows_zero: bool = True) -> str:
    """Return `mean ± standard deviation`; the mean alone with one value, nothing without values.

    Args:
        values: One a seed.
        digits: Digits behind the point.
        scale: Factor of every value.
        shows_zero: False if a deviation of exactly 0 is left out.
    """
    numbers = [scale * value for value in values]
    if not numbers:
        return ""
    deviation = stdev(numbers) if len(numbers) > 1 else 0.0
    shown = deviation > 0 or (shows_zero and len(numbers) > 1)
    return f"{fmean(numbers):.{digits}f}" + (f" ± {deviation:.{digits}f}" if shown else "")
