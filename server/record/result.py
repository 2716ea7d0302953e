"""Result of a run: the schema of result.json."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from common.errors import DataError
from common.privacy.options import ResolvedTrust
from server.aggregation.metrics import MetricSum
from server.record.events import Metrics, Number, Split

Status = Literal["completed", "failed"]
"""Outcome of a run."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """Best evaluated round by the task's objective.

    Args:
        round: Number of the round.
        metrics: Its metrics.
        split: Their split, as in `Round`.
        test: Metrics of its model on test data; empty if that is the final model or it was not measured.
    """

    round: int
    metrics: Metrics
    split: Split = ""
    test: Metrics = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ClientResult:
    """Result of one client: its examples, and metrics of the final model on its own held-out data."""

    examples: int
    metrics: Metrics


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """Privacy statement. The guarantee is the fixed `epsilon`; the spent amount is for planning only.

    Args:
        unit: Protected unit: `client`, `record` or `none`.
        mechanism: Description of the mechanism.
        epsilon_spent_max: ε of the largest cost requested from any client; None without a bound.
        delta: δ of both values of ε; None for pure ε.
        uncovered: Channels that the claim does not cover.
        epsilon: Limit at which each client's own ledger stops, whatever the server requests.
        neighbours: Neighbouring relation of data sets.
        account: Unit of costs, as in `Start`.
        trust: Party that the guarantee relies on: `local` or `helpers`.
        helpers: Helper -> fingerprint of its key.
        min_sum: Minimum number of clients in a secure sum; 0 without secure sums.
        sums: Numbers of secure sums that were `opened` and `lost`.
        guarantee: Guarantee of secure sums, and the party that it relies on; empty under trust `local`.
        weights: Weights of clients in means, where noise keeps them from those of the configuration; else empty.
    """

    unit: str
    mechanism: str
    epsilon_spent_max: float | None
    delta: float | None
    uncovered: list[str] = field(default_factory=list)
    epsilon: float | None = None
    neighbours: str = "none"
    account: str = ""
    trust: ResolvedTrust = "local"
    helpers: dict[str, str] = field(default_factory=dict)
    min_sum: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    guarantee: str = ""
    weights: str = ""


@dataclass(frozen=True, kw_only=True)
class Parent:
    """Run from which another one started.

    Args:
        run: Name of the run.
        model_sha256: Fingerprint of its model, or of its solution.
        days: Days between the starts of both runs.
        weight: Weight of its sums in this run, by the half-life; 1 for networks.
        unit: Protected unit of its privacy statement; `none` if it had no noise.
    """

    run: str
    model_sha256: str
    days: float
    weight: float = 1.0
    unit: str = "none"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Comparison of the federated model with a baseline and with each client alone.

    Units are those with held-out data. A difference d is the unit's metric of the federated model minus that of the other,
    on the same held-out data.

    Args:
        metric: Key of the compared metric.
        better: `higher` or `lower`: direction of better values.
        final: Value of what clients use: the federated model, or what is better by a client's own validation data.
        simple: Value of the baseline; None if it was not measured.
        simple_name: Name of the baseline, such as `relation frequency`.
        alone: Value of models that each client trained alone; None if it was not measured.
        wins_simple: Number of units that do better than by the baseline.
        wins_alone: Number of units that do better than alone.
        units: Number of compared units.
        unit_name: Plural noun of the units, such as `homes`.
        mean_simple: Mean of d against the baseline.
        se_simple: Standard error of that mean.
        mean_alone: Mean of d against clients alone.
        se_alone: Standard error of that mean.
        helped: Number of units that do better than alone and than by the baseline, as far as these were measured.
        helped_of: Number of units compared for that.
        uses: Model or baseline -> number of units that use it, by their own validation data; empty without a choice.
        text: Verdict in a sentence.
    """

    metric: str
    better: Literal["higher", "lower"]
    final: Number
    simple: Number | None = None
    simple_name: str = ""
    alone: Number | None = None
    wins_simple: int = 0
    wins_alone: int = 0
    units: int = 0
    unit_name: str = ""
    mean_simple: Number | None = None
    se_simple: Number | None = None
    mean_alone: Number | None = None
    se_alone: Number | None = None
    helped: int = 0
    helped_of: int = 0
    uses: dict[str, int] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Content of result.json: the outcome of a run.

    Args:
        error: Class of the error that ended the run, such as `QuorumError`; empty if it completed.
    """

    run: str
    method: str
    task: str
    model: str
    seed: int
    rounds: int
    rounds_done: int
    status: Status
    reason: str = ""
    metrics: Metrics
    best: Best | None
    clients: dict[str, ClientResult]
    seconds: float
    bytes_down: int
    bytes_up: int
    privacy: Privacy
    model_sha256: str
    versions: dict[str, str]
    verdict: Verdict | None = None
    floor_metric: str = ""
    """Metric of the simple baseline, for which clients send nothing; empty if it was not measured."""
    floor_value: Number | None = None
    local: Metrics = field(default_factory=dict)
    """Metrics that `fedloom up` read from its own clients on this machine; not sent to the server."""
    error: str = ""
    summed: MetricSum | None = None
    """Secure sum that `metrics` are plain means of; None for weighted means of single replies."""
    spread: dict[str, Metrics] = field(default_factory=dict)
    """Quantiles of `examples` and of each metric over more than 10,000 clients.

    `clients` is then in a file of its own.
    """
    replaces: str = ""
    """Withdrawn run that this one replaces without a forgotten client; empty if there is none."""
    state: str = ""
    """Round after which a resumed simulation started its clients' state anew; empty if it did not."""
    parent: Parent | None = None
    """Run from which it started; None for a run from the beginning."""
    device: str = ""
    """Device on which the clients of this command trained; empty if their owners chose it elsewhere."""


_RESULT: TypeAdapter[Result] = TypeAdapter(Result)


def result_to_json(result: Result) -> bytes:
    """Convert a result to indented JSON."""
    return _RESULT.dump_json(result, indent=2) + b"\n"


def result_from_json(text: bytes | str) -> Result:
    """Parse a result; inverse of `result_to_json`.

    Raises:
        DataError: The text is torn or not a result.
    """
    try:
        return _RESULT.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"not a run result: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
