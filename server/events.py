"""What a run tells while it goes on, and what it has to say at its end: the schema of metrics.jsonl and result.json."""

import math
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from common.errors import DataError

Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""A float; JSON has no NaN and no infinity, both are written as null and read as NaN."""

ENDED_EARLY = "ended early"
"""What the reason of a run begins with that completed before its last round."""

Split = Literal["", "validation", "test"]
"""Which data metrics are of; empty in runs that measure on test data only."""

Metrics = dict[str, Number]
"""Metric key (`auc`, `hr20`, ...) -> value; the keys are stable across releases."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """A run begins, or goes on after `--resume`.

    Args:
        account: What its rounds' costs are counted in, `zcdp`, `pure` or `rdp-α`; empty without noise.
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
    """A round is over.

    Args:
        loss: Mean training loss that the clients reported.
        metrics: Of the global model; empty where the round was not evaluated.
        split: What the metrics are of, where a run's rounds are measured on validation data and its last on test data.
        answered: Clients whose reply counts, of those `asked`.
        missing: Names of the clients that did not answer.
        refused: Name -> reason, for those whose reply does not count.
        server: The strategy's own numbers.
        clusters: Client -> the cluster it is in, in methods that keep several models.
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
    """The run is over; nothing follows."""

    event: Literal["finish"] = "finish"
    time: float = field(default_factory=time.time)
    status: Literal["completed", "failed"]
    reason: str = ""


Event = Start | Round | Finish


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best evaluated round, its metrics and what they are of, as in `Round`."""

    round: int
    metrics: Metrics
    split: Split = ""


@dataclass(frozen=True, kw_only=True)
class ClientResult:
    """One client's share: its examples, and the final model measured on its own held-out data."""

    examples: int
    metrics: Metrics


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The privacy statement. The guarantee is `epsilon`, fixed beforehand; what was spent is a number to plan with.

    Args:
        unit: Whose data are hidden: `client`, `record` or `none`.
        mechanism: In words.
        epsilon_spent_max: ε of the most that any client was asked to spend; None where there is no bound.
        delta: The δ that goes with both; None for pure ε.
        uncovered: Channels the claim does not cover.
        epsilon: Where each client's own ledger stops, whatever is asked.
        neighbours: Which two data sets look alike.
        account: What costs are counted in, as in `Start`.
        counts: What is promised of counts that clients give beside updates without noise; empty where nothing is.
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
    """result.json: what a run came to."""

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
    """One line of JSON, newline included."""
    return _EVENT.dump_json(event) + b"\n"


def event_from_line(line: bytes | str) -> Event:
    """Inverse of `event_to_line`; unknown fields of a later release are ignored.

    Raises:
        DataError: The line is torn or not an event.
    """
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        raise DataError(f"not a run event: {error.errors()[0]['msg']}") from None


def result_to_json(result: Result) -> bytes:
    """Indented JSON for people and scripts."""
    return _RESULT.dump_json(result, indent=2) + b"\n"


def result_from_json(text: bytes | str) -> Result:
    """Inverse of `result_to_json`.

    Raises:
        DataError: The text is torn or not a result.
    """
    try:
        return _RESULT.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"not a run result: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
