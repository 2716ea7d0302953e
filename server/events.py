"""Events of a run and its result: the schema of metrics.jsonl and result.json."""

import math
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from common.errors import DataError

Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""Float; NaN and infinity, which JSON lacks, are written as null and read as NaN."""

ENDED_EARLY = "ended early"
"""Beginning of the reason of a run that completed before its last round."""

Split = Literal["", "validation", "test"]
"""Data split of metrics; empty in runs that evaluate on test data only."""

Metrics = dict[str, Number]
"""Metric key (`auc`, `hr20`, ...) -> value; the keys are stable across releases."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Start of a run, or its continuation after `--resume`.

    Args:
        account: Unit of its rounds' costs, `zcdp`, `pure` or `rdp-α`; empty without noise.
    """

    event: Literal["start"] = "start"
    time: float = field(default_factory=time.time)
    run: str
    method: str
    task: str
    model: str
    seed: int
    rounds: int
    account: str = ""


@dataclass(frozen=True, kw_only=True)
class Round:
    """Completed round.

    Args:
        loss: Mean training loss that the clients reported.
        metrics: Metrics of the global model; empty if the round was not evaluated.
        split: Data split of the metrics if rounds are evaluated on validation data and the last one on test data.
        answered: Number of clients whose reply counts, out of `asked`.
        missing: Names of the clients that did not answer.
        refused: Name -> reason for clients whose reply does not count.
        server: Numbers of the strategy.
        clusters: Client -> cluster, in methods with several models.
    """

    event: Literal["round"] = "round"
    time: float = field(default_factory=time.time)
    round: int
    rounds: int
    loss: Number
    metrics: Metrics = field(default_factory=dict)
    split: Split = ""
    seconds: float
    answered: int
    asked: int
    missing: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    bytes_down: int
    bytes_up: int
    server: Metrics = field(default_factory=dict)
    clusters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Finish:
    """End of the run; no event follows."""

    event: Literal["finish"] = "finish"
    time: float = field(default_factory=time.time)
    status: Literal["completed", "failed"]
    reason: str = ""


Event = Start | Round | Finish


@dataclass(frozen=True, kw_only=True)
class Best:
    """Best evaluated round, its metrics and their split, as in `Round`."""

    round: int
    metrics: Metrics
    split: Split = ""


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
        counts: Guarantee for counts that clients send in addition to updates without noise; empty if there is none.
    """

    unit: str
    mechanism: str
    epsilon_spent_max: float | None
    delta: float | None
    uncovered: list[str] = field(default_factory=list)
    epsilon: float | None = None
    neighbours: str = "none"
    account: str = ""
    counts: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Content of result.json: the outcome of a run."""

    run: str
    method: str
    task: str
    model: str
    seed: int
    rounds: int
    rounds_done: int
    status: Literal["completed", "failed"]
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


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
_RESULT: TypeAdapter[Result] = TypeAdapter(Result)


def event_to_line(event: Event) -> bytes:
    """Convert an event to one line of JSON, newline included."""
    return _EVENT.dump_json(event) + b"\n"


def event_from_line(line: bytes | str) -> Event:
    """Parse a line; inverse of `event_to_line`. Unknown fields of a later release are ignored.

    Raises:
        DataError: The line is torn or not an event.
    """
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        raise DataError(f"not a run event: {error.errors()[0]['msg']}") from None


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
