"""Events of a run: the schema of metrics.jsonl, and its lines in the ServerApp's log."""

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from common.errors import DataError
from common.text import count


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Client that does not take part, or the server that refuses it; once for each client and reason.

    Args:
        client: Name of the client, or its node if its key has no name.
        reason: Reason, and what its owner can do.
    """

    event: Literal["refusal"] = "refusal"
    time: float = field(default_factory=time.time)
    client: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Sum:
    """Secure sum that helpers opened, or that is lost.

    Args:
        round: Number of the round.
        channel: Summed values: `train`, `evaluate`, or `names/0` and `names/1` of a vocabulary.
        clients: Number of clients in the sum; 0 if it is lost.
        rejected: Client -> reason why its upload is not in the sum.
        seconds: Time from the last upload to the opened sum.
        bytes: Bytes exchanged with the helpers.
        lost: Reason why the sum will never be opened; empty if it was.
    """

    event: Literal["sum"] = "sum"
    time: float = field(default_factory=time.time)
    round: int
    channel: str
    clients: int
    rejected: dict[str, str] = field(default_factory=dict)
    seconds: float
    bytes: int
    lost: str = ""


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
        event: Kind of the event; the other fields follow from it.
        time: Time of the event, seconds since 1970.
        run: Name of the run.
        method: Name of the training method, or of a planner.
        task: Name of the learning task.
        model: Name of the network, such as `default`.
        seed: Seed of every random choice but privacy noise.
        rounds: Planned number of rounds.
        account: Unit of its rounds' costs, `gdp`, `zcdp`, `pure` or `rdp-α`; empty without noise.
        simple: Metric key -> key of the same metric of the untrained baseline.
        split: Split that rounds are evaluated on, as in `Round`.
        fingerprint: SHA-256 of vocabulary and split; runs with different ones are not comparable.
        clients: Names of the enrolled clients.
        remark: Remark of the task on the run; empty if it has none.
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
    simple: dict[str, str] = field(default_factory=dict)
    split: Split = ""
    fingerprint: str = ""
    clients: list[str] = field(default_factory=list)
    remark: str = ""


ClientState = Literal["online", "late", "missing", "refused", "paused", "revoked"]
"""State of a client in a round: `missing` is not connected, `late` sent no reply in time."""


@dataclass(frozen=True, kw_only=True)
class ClientRound:
    """Round of one client.

    Args:
        state: State of the client: `missing` is not connected, `late` sent no reply in time.
        seconds: Seconds until its reply.
        bytes_up: Bytes of its replies.
        bytes_down: Bytes of the messages sent to it.
        last_seen: Time of its newest reply, seconds since 1970; 0 if there is none.
        cost: Privacy cost that the server requested, in the account's unit.
        left: Remaining cost of the run's budget by the server's count; None without a budget.
    """

    state: ClientState
    seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    last_seen: float = 0.0
    cost: float = 0.0
    left: float | None = None


@dataclass(frozen=True, kw_only=True)
class RoundEvent:
    """Completed round.

    Args:
        round: Number of the round, from 1.
        loss: Mean training loss that the clients reported.
        metrics: Metrics of the global model; empty if the round was not evaluated.
        split: Data split of the metrics if rounds are evaluated on validation data and the last one on test data.
        seconds: Duration of the round.
        answered: Number of clients whose reply counts, out of `asked`.
        asked: Number of clients in the cohort, plus clients that took part before and are gone or refuse.
        missing: Names of the clients that did not answer or are gone.
        refused: Name -> reason for clients whose reply does not count.
        shortened: Name -> length of the reply, for clients whose reply counts at the typical length.
        bytes_down: Bytes sent to all clients.
        bytes_up: Bytes received from all clients.
        server: Numbers of the strategy, such as norms and step sizes.
        clusters: Client -> cluster, in methods with several models.
        selection: Trimmed mean over the clients of the metric that chooses the best round; NaN below five clients.
        median_loss: Lower median of the clients' loss; NaN without evaluation.
        clients: Client -> its round; of more than 1,000 clients the 100 slowest and those that are not online.
        states: State -> number of clients in it.
        gone: Client without connection -> first round without its reply.
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
    shortened: dict[str, str] = field(default_factory=dict)
    bytes_down: int
    bytes_up: int
    server: Metrics = field(default_factory=dict)
    clusters: dict[str, int] = field(default_factory=dict)
    selection: Number = math.nan
    median_loss: Number = math.nan
    clients: dict[str, ClientRound] = field(default_factory=dict)
    states: dict[ClientState, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Finish:
    """End of the run; no event follows unless the run is resumed.

    Args:
        status: Outcome of the run.
        reason: Cause of a failure, or of an early end; empty otherwise.
    """

    event: Literal["finish"] = "finish"
    time: float = field(default_factory=time.time)
    status: Literal["completed", "failed"]
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Wait for clients before the first round, or until enough are connected again; or for room on a disk.

    Args:
        online: Names of the connected clients; node numbers before they are enrolled.
        wanted: Number of clients that the run needs.
        until: End of the wait, seconds since 1970.
        refused: Reason -> number of the connected clients that do not take part for it.
        disk: Shortage of room on a disk, for which the run waits without a limit; empty in a wait for clients.
    """

    event: Literal["waiting"] = "waiting"
    time: float = field(default_factory=time.time)
    online: list[str] = field(default_factory=list)
    wanted: int = 0
    until: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)
    disk: str = ""


Event = Start | RoundEvent | Finish | Waiting | Refusal | Sum


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


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


def event_text(event: Event, folder: Path) -> str:
    """Return a line about an event; empty for events that the log omits."""
    match event:
        case Start():
            remark = f"; {event.remark}" if event.remark else ""
            rounds = count(event.rounds, "round")
            return f"run {event.run}: {event.method} on {event.task}, {rounds}, seed {event.seed}{remark}"
        case RoundEvent():
            figures = "".join(f", {key} {value:.3f}" for key, value in sorted(event.metrics.items()))
            clients = f"{event.answered}/{event.asked} clients, {event.seconds:.1f} s"
            loss = f", train loss {event.loss:.3f}" if math.isfinite(event.loss) else ""
            return f"round {event.round}/{event.rounds}: {clients}{loss}{figures}"
        case Finish():
            reason = f": {event.reason}" if event.reason else ""
            return f"run {event.status}{reason}; result in {(folder / 'result.json').resolve()}"
        case _:
            return ""
