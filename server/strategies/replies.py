"""Training replies: validation, and means by row."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from flwr.app import Message, RecordDict

from common.arrays import Arrays, check_like
from common.errors import WireError
from common.reply_sums import BlockReply
from common.tasks.spec import AnyTask, TaskOptions
from common.wire.encodings import unpack_reply
from common.wire.messages import AssignReply, TrainReply
from common.wire.sparse_rows import check_rows, expand_reply, rows_of
from server.aggregation.round_results import Reply
from server.aggregation.row_mean import rescale_rows
from server.exchange import content_size
from server.plausible import check_loss, check_size


@dataclass(frozen=True)
class ExpectedReply:
    """Expected form of a training reply.

    Args:
        round: Number of the round.
        max_steps: Maximum number of local steps.
        max_examples: Number of records at enrolment.
        task: Task, which gives the loss its range.
        model: Arrays that the update must match.
        needs_gradient: True if the reply must contain s_k.
        encoding: Form of the numbers in uploads.
    """

    round: int
    max_steps: int
    max_examples: int
    task: AnyTask
    model: Arrays
    needs_gradient: bool
    encoding: str


def accept_reply(reply: TrainReply, expected: ExpectedReply, options: TaskOptions) -> tuple[TrainReply, Arrays]:
    """Return a reply that can enter a mean, and the row ids that it names.

    It has full tables, or their gathered rows if local steps gather rows.

    The arrays of a client of a block are in a sum, whose maker is in this process.

    Raises:
        WireError: The round, the number of steps or records, the loss or the arrays are not as expected.
    """
    rows = _read_row_ids(reply.update) if options.named_rows else {}
    if reply.round != expected.round:
        raise WireError(f"reply is of round {reply.round}, not of round {expected.round}")
    if not 1 <= reply.steps <= expected.max_steps or not 1 <= reply.examples <= expected.max_examples:
        most = f"at most {expected.max_steps} on {expected.max_examples} are possible"
        raise WireError(f"invalid reply: {reply.steps} local steps on {reply.examples} records; {most}")
    check_loss(reply.loss, expected.task)
    if isinstance(reply, BlockReply):
        return reply, rows
    reply = unpack_reply(reply, expected.encoding)
    reply = reply if options.gathers_rows else expand_reply(reply, expected.model)
    check_like(reply.update, check_rows(reply.update, expected.model), "update")
    if reply.gradient or expected.needs_gradient:
        check_like(reply.gradient, expected.model, "gradient")
    return reply, rows


def check_assignment(reply: AssignReply, number: int, clusters: int) -> AssignReply:
    """Return the reply if it has a finite score for each of the K models, and a valid property or none.

    Raises:
        WireError: The round, the scores or the property are invalid.
    """
    if reply.round != number:
        raise WireError(f"reply is of round {reply.round}, not of round {number}")
    if set(reply.losses) != {str(j) for j in range(clusters)} or not all(map(math.isfinite, reply.losses.values())):
        raise WireError(f"reply has no finite assignment score for each of {clusters} models")
    if reply.property:
        low, high = reply.property.get("low"), reply.property.get("high")
        if low is None or high is None or low.shape != high.shape or not (low <= high).all():
            raise WireError("property has no lower and upper bounds, or bounds in the wrong order")
        days = reply.property.get("days")
        if days is not None and not (days.shape == (1,) and 0 <= float(days[0]) < math.inf):
            raise WireError("property has no valid number of days")
    return reply


def _read_row_ids(update: Arrays) -> Arrays:
    """Return the row ids in an update, in runs whose clients send them in plaintext.

    Raises:
        WireError: The update has row ids of no table or of several tables.
    """
    rows = rows_of(update)
    if len(rows) != 1:
        raise WireError(f"reply has row ids of {len(rows)} tables, not of one")
    return rows


def average_by_row(replies: list[Reply]) -> list[Reply]:
    """Rescale the replies: their mean is then, for every row, the mean over the clients that sent the row."""
    updates = rescale_rows([r.train.update for r in replies], [r.rows for r in replies], [r.weight for r in replies])
    return [replace(r, train=replace(r.train, update=u)) for r, u in zip(replies, updates, strict=True)]


def split_replies(
    messages: Iterable[Message], examine: Callable[[Message], Reply]
) -> tuple[list[Reply], dict[int, str]]:
    """Return valid replies, ordered by client name, and node -> reason for invalid ones.

    Args:
        messages: Replies of the cohort.
        examine: Returns the valid reply in a message; raises WireError if it has none.
    """
    usable: list[Reply] = []
    failed: dict[int, str] = {}
    for message in messages:
        try:
            usable.append(examine(message))
        except WireError as error:
            failed[message.metadata.src_node_id] = str(error)
    return sorted(usable, key=lambda reply: reply.client), failed


def content_of(message: Message, limit: float = math.inf) -> RecordDict:
    """Return the content of a message.

    Raises:
        WireError: The message is an error, with its reason as text, or has more than `limit` bytes.
    """
    if message.has_error():
        raise WireError(message.error.reason or f"error {message.error.code}")
    check_size(content_size(message.content), limit)
    return message.content
