"""Checks of replies: form, ranges of reported numbers, explosion of the validation loss."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from common.arrays import Arrays, check_like
from common.contribution import MAX_PLAUSIBLE, BlockReply
from common.errors import WireError
from common.metrics import MetricSpec
from common.tasks.closed_form import Entries
from common.tasks.options import VARIANTS
from common.tasks.spec import ALONE_PREFIX, AnyTask
from common.text import printable
from common.wire.encodings import unpack_reply
from common.wire.messages import AssignReply, EvaluateReply, TrainReply
from common.wire.sparse_rows import VALUES, check_rows, expand_reply, rows_of
from server.aggregation.metrics import LOSS, Evaluation, is_plausible
from server.exchange.grid import MEGABYTE

MAX_EXAMPLES = 10**9
"""Largest number of records that a client may enrol with."""

MAX_WEIGHT_PER_RECORD = 10.0
"""Largest weight of a metric per record of a client; an F1 score has two per record."""

ALWAYS_POSSIBLE_WEIGHT = 1000.0
"""Weight that any client may have.

In splits that came with the data, a client with few training records may have many held-out ones.
"""

TOLERANCE = 1e-6
"""Accepted excess over the range of a metric, from rounding."""

ENROL_REPLY, SMALL_REPLY, ASSIGN_REPLY = 4096, 65_536, 4 * MEGABYTE
"""Largest replies in bytes: to the invitation; metrics; with a client's property or windows."""

FIELDS, ENTRY, ROW_ID = 4096, 256, 8
"""Bytes of a reply beside its arrays, of an array beside its numbers, and of the id of a row."""


def limit_reply(upload: Arrays, *, has_gradient: bool) -> int:
    """Return the largest size of a training reply, with a gradient or not, and with the ids of all rows."""
    ids = sum(ROW_ID * len(a) for a in upload.values() if a.ndim == 2)
    size = ids + sum(a.nbytes + ENTRY + 2 * len(name) for name, a in upload.items())
    return (1 + has_gradient) * size + FIELDS


def lowest_loss(task: AnyTask) -> float:
    """Return the lowest possible training loss: that of the metric if the task's loss is an error."""
    is_error = all(task.loss_is_error(model) for model in VARIANTS)
    spec = _find(LOSS, task) if is_error else None
    return -MAX_PLAUSIBLE if spec is None else max(spec.low, -MAX_PLAUSIBLE)


def check_loss(loss: float, lowest: float) -> None:
    """Check that a training loss is finite and in its range.

    Raises:
        WireError: It is not.
    """
    if not lowest - TOLERANCE <= loss <= MAX_PLAUSIBLE:
        raise WireError(f"invalid reply: loss {loss:g}")


def check_metrics(reply: EvaluateReply, number: int, task: AnyTask, max_weight: float) -> None:
    """Check that a client can have measured what it reports.

    Values that a diverged model has, NaN and beyond `MAX_PLAUSIBLE`, are left to `server.aggregation.metrics`.

    Raises:
        WireError: The round, a name, a value or a weight is impossible.
    """
    if reply.round != number:
        raise WireError(f"reply is of round {reply.round}, not of round {number}")
    for key in (*reply.metrics, *reply.weights):
        if _find(key, task) is None:
            raise WireError(f"metric '{printable(key, 40)}' is not one of task '{task.name}'")
    for key, weight in reply.weights.items():
        if not 0 <= weight <= max_weight:
            raise WireError(f"weight {weight:g} of {printable(key, 40)}, at most {max_weight:g} is possible")
    for key, value in reply.metrics.items():
        spec = _find(key, task)
        is_within = spec is None or spec.low - TOLERANCE <= value <= spec.high + TOLERANCE
        if spec is not None and abs(value) <= MAX_PLAUSIBLE and not is_within:
            raise WireError(f"{printable(key, 40)} = {value:g} is outside {spec.low:g} to {spec.high:g}")


def check_paired(paired: Arrays, task: AnyTask, max_units: float) -> None:
    """Check that the values of a metric can have these sums of differences.

    Sums that are no sums at all are left to `server.aggregation.metrics`.

    Raises:
        WireError: The comparison is unknown, or has too many units or too large differences.
    """
    spec = _find(task.objective.metric, task)
    span = math.inf if spec is None else spec.high - spec.low + TOLERANCE
    for key, sums in paired.items():
        if key not in task.pairs:
            raise WireError(f"sums '{printable(key, 40)}' are not of a comparison")
        if is_plausible(sums) and sums[0] > 0:
            n, total, squares = sums[:3].tolist()
            if n > max_units or abs(total) / n > span or squares / n > span**2:
                raise WireError(f"sums of {key}: {n:g} units with a mean difference of {total / n:g} are impossible")


@lru_cache(maxsize=256)  # clients choose keys
def _find(key: str, task: AnyTask) -> MetricSpec | None:
    """Return the declaration of a metric, also of one trained alone, or of what the client uses."""
    return task.find_metric(key.removeprefix(ALONE_PREFIX))


def limit_weight(records: int, test_share: float, *, hides_examples: bool) -> float:
    """Return the largest weight of a client's metric, from its number of training records.

    Args:
        records: Largest number of training records, by what the client enrolled with.
        test_share: Share of records in the test split.
        hides_examples: True if the privacy unit protects the number of records.
    """
    by_records = MAX_WEIGHT_PER_RECORD * records / (1 - test_share)
    return MAX_PLAUSIBLE if hides_examples else max(by_records, ALWAYS_POSSIBLE_WEIGHT)


@dataclass(frozen=True)
class ExpectedReply:
    """Expected form of the training replies in a phase of a round.

    Args:
        lowest_loss: Lowest loss that a client can have.
        needs_gradient: True if a reply must contain s_k.
        encoding: Form of the numbers in uploads.
        names_rows: True if a reply names the rows of one table that it changes.
        keeps_rows: True if tables stay rows, as they were sent.
        round: Number of the round.
        max_steps: Maximum number of local steps.
    """

    lowest_loss: float
    needs_gradient: bool
    encoding: str
    names_rows: bool
    keeps_rows: bool
    round: int = 0
    max_steps: int = 0


def accept_reply(
    reply: TrainReply, expected: ExpectedReply, model: Arrays, max_examples: int
) -> tuple[TrainReply, Arrays]:
    """Return a reply that can enter a mean, and the row ids that it names.

    It has full tables, or their gathered rows if local steps gather rows.

    The arrays of a client of a block are in a sum, whose maker is in this process.
    `max_examples` is the number of records at enrolment.

    Raises:
        WireError: The round, the number of steps or records, the loss or the arrays are not as expected.
    """
    rows = _read_row_ids(reply.update) if expected.names_rows else {}
    if reply.round != expected.round:
        raise WireError(f"reply is of round {reply.round}, not of round {expected.round}")
    if not 1 <= reply.steps <= expected.max_steps or not 1 <= reply.examples <= max_examples:
        most = f"at most {expected.max_steps} on {max_examples} are possible"
        raise WireError(f"invalid reply: {reply.steps} local steps on {reply.examples} records; {most}")
    check_loss(reply.loss, expected.lowest_loss)
    if isinstance(reply, BlockReply):
        return reply, rows
    if expected.encoding != "float32":
        reply = unpack_reply(reply, expected.encoding)
    reply = reply if expected.keeps_rows else expand_reply(reply, model)
    check_like(reply.update, check_rows(reply.update, model) if expected.keeps_rows else model, "update")
    if reply.gradient or expected.needs_gradient:
        check_like(reply.gradient, model, "gradient")
    return reply, rows


def check_entries(statistics: Arrays, entries: Mapping[str, Entries], records: int, clients: int = 1) -> None:
    """Check that honest data give the statistics of a client or the sum of several; 0 records: any number.

    Raises:
        WireError: A number is out of its range.
    """
    for sent, numbers in statistics.items():
        if (name := sent.removesuffix(VALUES)) not in entries:
            continue
        scale = (records or math.inf) if entries[name].per_record else clients
        low, high = (bound and bound * scale for bound in (entries[name].low, entries[name].high))
        excess = TOLERANCE * min(scale, records or clients)
        least, most = float(numbers.min(initial=0)), float(numbers.max(initial=0))
        if not (low - excess <= least and most <= high + excess):
            far = least if least < low - excess else most
            raise WireError(f"statistic '{name}' has {far:.3g}; honest data give {low:.3g} to {high:.3g}")
        if entries[name].has_counts and (abs(numbers[:, 0]) > numbers[:, 1] + TOLERANCE * max(1.0, most)).any():
            raise WireError(f"statistic '{name}' has a sum beyond the number of its values, each of which is at most 1")


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


EXPLOSION = 1000.0
"""Factor on the largest of the last losses above which a step counts as ruinous.

Honest clients that overfit between two rounds raised it 70-fold, and it fell again by itself.
"""

RECENT_LOSSES = 5


class LossWatch:
    """Losses of the last evaluations: lower medians over the clients, which no single one decides."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=RECENT_LOSSES)
        self._first = math.inf

    def record(self, loss: float) -> None:
        """Record the loss of an accepted step; NaN if there is none."""
        if math.isfinite(loss):
            self._first = loss if math.isinf(self._first) else self._first
            self._recent.append(loss)

    def find_explosion(self, evaluation: Evaluation) -> str:
        """Return how far the loss exploded; empty if it did not.

        It did if it is worse than at the start and many times the last losses, or if most clients cannot compute it.
        """
        loss, reference = evaluation.median_loss, max(self._recent, default=math.inf)
        if math.isnan(loss) or loss <= max(EXPLOSION * reference, self._first):
            return ""
        return f"the validation loss rose from {reference:.3g} to {loss:.3g}"
