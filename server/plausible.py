"""Ranges of the numbers that clients report; a number outside them cannot be an honest measurement."""

import math
from typing import get_args

from common.arrays import Arrays
from common.errors import WireError
from common.metrics.known import USED
from common.metrics.spec import MetricSpec
from common.reply_lengths import MAX_PLAUSIBLE
from common.tasks.comparison import ALONE, ALONE_PREFIX, ALONE_ROUNDS, SIMPLE
from common.tasks.spec import AnyTask, ModelVariant
from common.text import printable
from common.wire.messages import EvaluateReply
from server.paired_sums import is_plausible

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

MEGABYTE = 10**6
SMALL_REPLY, ASSIGN_REPLY = MEGABYTE, 64 * MEGABYTE
"""Largest replies in bytes: without a model's arrays, and with a client's property or windows."""


def check_size(size: int, limit: float) -> None:
    """Check that a reply is no larger than the largest honest one.

    Raises:
        WireError: It is larger.
    """
    if size > limit:
        raise WireError(f"reply of {size / MEGABYTE:,.1f} MB, at most {limit / MEGABYTE:,.1f} MB can be needed")


def limit_reply(model: Arrays) -> int:
    """Return the largest size of a training reply: update and gradient, both with ids of all rows."""
    return 4 * sum(a.nbytes for a in model.values()) + MEGABYTE


def check_loss(loss: float, task: AnyTask) -> None:
    """Check that a training loss is finite and, if the task's loss is an error, in its range.

    Raises:
        WireError: It is not.
    """
    is_error = all(task.loss_is_error(model) for model in get_args(ModelVariant))
    spec = task.find_metric("loss") if is_error else None
    low = -MAX_PLAUSIBLE if spec is None else max(spec.low, -MAX_PLAUSIBLE)
    if not low - TOLERANCE <= loss <= MAX_PLAUSIBLE:
        raise WireError(f"invalid reply: loss {loss:g}")


def check_metrics(reply: EvaluateReply, number: int, task: AnyTask, max_weight: float) -> None:
    """Check that a client can have measured what it reports.

    Values that a diverged model has, NaN and beyond `MAX_PLAUSIBLE`, are left to `server.evaluation`.

    Args:
        reply: Metrics of a client.
        number: Number of the round.
        task: The run's task.
        max_weight: Largest possible weight.

    Raises:
        WireError: The round, a name, a value or a weight is impossible.
    """
    if reply.round != number:
        raise WireError(f"reply is of round {reply.round}, not of round {number}")
    for key in (*reply.metrics, *reply.weights):
        if key != ALONE_ROUNDS and _find(key, task) is None:
            raise WireError(f"metric '{printable(key, 40)}' is not one of task '{task.name}'")
    for key, weight in reply.weights.items():
        if not 0 <= weight <= max_weight:
            raise WireError(f"weight {weight:g} of {printable(key, 40)}, at most {max_weight:g} is possible")
    for key, value in reply.metrics.items():
        spec = _find(key, task)
        if key == ALONE_ROUNDS and value < 0:
            raise WireError(f"{key} = {value:g} is below 0")
        if spec is not None and abs(value) <= MAX_PLAUSIBLE and not _is_within(value, spec.low, spec.high):
            raise WireError(f"{printable(key, 40)} = {value:g} is outside {spec.low:g} to {spec.high:g}")


def check_paired(paired: Arrays, task: AnyTask, max_units: float) -> None:
    """Check that the values of a metric can have these sums of differences.

    Sums that are no sums at all are left to `server.paired_sums`.

    Raises:
        WireError: The comparison is unknown, or has too many units or too large differences.
    """
    spec = None if task.comparison is None else _find(task.comparison.metric, task)
    span = math.inf if spec is None else spec.high - spec.low + TOLERANCE
    for key, sums in paired.items():
        if key not in (SIMPLE, ALONE):
            raise WireError(f"sums '{printable(key, 40)}' are not of a comparison")
        if is_plausible(sums) and sums[0] > 0:
            n, total, squares = sums[:3].tolist()
            if n > max_units or abs(total) / n > span or squares / n > span**2:
                raise WireError(f"sums of {key}: {n:g} units with a mean difference of {total / n:g} are impossible")


def _find(key: str, task: AnyTask) -> MetricSpec | None:
    """Return the declaration of a metric, also of one trained alone, or of what the client uses."""
    return task.find_metric(key.removeprefix(ALONE_PREFIX).removeprefix(USED.prefix))


def limit_weight(records: int, test_share: float, *, hides_examples: bool) -> float:
    """Return the largest weight of a client's metric, from its number of training records.

    Args:
        records: Largest number of training records, by what the client enrolled with.
        test_share: Share of records in the test split.
        hides_examples: True if the privacy unit protects the number of records.
    """
    by_records = MAX_WEIGHT_PER_RECORD * records / (1 - test_share)
    return MAX_PLAUSIBLE if hides_examples else max(by_records, ALWAYS_POSSIBLE_WEIGHT)


def _is_within(value: float, low: float, high: float) -> bool:
    return low - TOLERANCE <= value <= high + TOLERANCE and not math.isnan(value)
