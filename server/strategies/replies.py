"""Training replies: which of them can be used, and their mean."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from flwr.app import Message, RecordDict

from common.arrays import Arrays, check_like
from common.errors import WireError
from common.wire.codec import decode
from common.wire.messages import AssignReply, TrainReply
from common.wire.sparse_rows import rows_of
from server.aggregation import fednova
from server.aggregation.row_mean import Rows, rescale_rows


@dataclass(frozen=True)
class Reply:
    """A usable training reply and whose it is."""

    client: str
    weight: float
    train: TrainReply
    rows: Rows = field(default_factory=dict)
    """Which rows of tables it brought; empty where tables came whole, or rows that are missing are zero."""


@dataclass(frozen=True)
class ReplyTerms:
    """What was asked for, and so what a reply must be."""

    round: int
    most_steps: int
    model: Arrays
    needs_gradient: bool


def check(reply: TrainReply, terms: ReplyTerms) -> None:
    """Accept a reply that can enter a mean.

    Raises:
        WireError: It is of another round, claims what was not asked for, or its arrays are not the model's or not finite.
    """
    if reply.round != terms.round:
        raise WireError(f"answered round {reply.round} in round {terms.round}")
    if not 1 <= reply.steps <= terms.most_steps or reply.examples < 1:
        raise WireError(f"claims {reply.steps} local steps on {reply.examples} records")
    if not math.isfinite(reply.loss):
        raise WireError(f"reports a loss of {reply.loss}")
    check_like(reply.update, terms.model, "update")
    if reply.gradient or terms.needs_gradient:
        check_like(reply.gradient, terms.model, "gradient")


def check_assignment(reply: AssignReply, number: int, clusters: int) -> AssignReply:
    """The reply, if it is of that round, with a finite number for each of the K models and a usable property, or none.

    Raises:
        WireError: It does not.
    """
    if reply.round != number:
        raise WireError(f"answered round {reply.round} in round {number}")
    if set(reply.losses) != {str(j) for j in range(clusters)} or not all(map(math.isfinite, reply.losses.values())):
        raise WireError(f"does not say how well each of {clusters} models suits it")
    if reply.property:
        low, high = reply.property.get("low"), reply.property.get("high")
        if low is None or high is None or low.shape != high.shape or not (low <= high).all():
            raise WireError("its property has no lower and upper bounds, or in the wrong order")
        days = reply.property.get("days")
        if days is not None and not (days.shape == (1,) and 0 <= float(days[0]) < math.inf):
            raise WireError("it does not say from how many days its property is")
    return reply


def mean_update(replies: list[Reply]) -> Arrays:
    """Δ̄ of a round, right also where clients made different numbers of local steps."""
    return fednova.mean_update(
        [r.train.update for r in replies], [r.train.steps for r in replies], [r.weight for r in replies]
    )


def rows_named(update: Arrays) -> Arrays:
    """Return the row ids that an update names in a run whose clients send them in plaintext.

    Raises:
        WireError: It names none, or rows of more than one table.
    """
    rows = rows_of(update)
    if len(rows) != 1:
        raise WireError(f"rows of {len(rows)} tables, expected those of one")
    return rows


def rows_alone(replies: list[Reply]) -> list[Reply]:
    """The replies, such that any mean of them is, row by row, that of the clients that sent the row."""
    updates = rescale_rows([r.train.update for r in replies], [r.rows for r in replies], [r.weight for r in replies])
    return [replace(r, train=replace(r.train, update=u)) for r, u in zip(replies, updates, strict=True)]


def sort_out(
    messages: Iterable[Message], name_of: Callable[[int], str], accept: Callable[[str, TrainReply], Reply]
) -> tuple[list[Reply], dict[int, str]]:
    """Replies that `accept` takes, in the order of names, and node -> reason for the others."""
    usable: list[Reply] = []
    failed: dict[int, str] = {}
    for message in messages:
        node = message.metadata.src_node_id
        try:
            usable.append(accept(name_of(node), decode(TrainReply, content_of(message))))
        except WireError as error:
            failed[node] = str(error)
    return sorted(usable, key=lambda reply: reply.client), failed


def content_of(message: Message) -> RecordDict:
    """What a message brings.

    Raises:
        WireError: It brings an error, with its reason.
    """
    if message.has_error():
        raise WireError(message.error.reason or f"error {message.error.code}")
    return message.content
