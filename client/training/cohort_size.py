"""Number of clients of one process that train stacked."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from client.tasks.learner import Learner

TOGETHER = 32
"""Number of clients that train stacked; larger cohorts pad more and exceed the processor's cache."""

MAX_UNSTACKED = 16
"""Maximum number of clients that train one at a time by default."""

STEP_BYTES = 16 * 2**20
"""Bytes of the largest result of a stacked step.

Above it, a step takes up to twice the processor time, and memory in proportion.
"""

MemberT = TypeVar("MemberT")


@runtime_checkable
class HasWideRows(Protocol):
    """Learner whose step computes many numbers from each row, such as a score of each item."""

    row_numbers: int
    """Number of float32 numbers that the largest result of a step has for each row."""


def choose_cohort(clients: int) -> int:
    """Return the number of clients that train stacked by default."""
    return 1 if clients <= MAX_UNSTACKED else TOGETHER


def split_cohort(
    members: Sequence[MemberT], learner_of: Callable[[MemberT], Learner], together: int
) -> Iterator[list[MemberT]]:
    """Yield cohorts that train stacked, in the order of the members; the machine has no influence on them.

    Args:
        members: Clients by the size of their data, ascending. A cohort is padded to its last one.
        learner_of: Function that returns the learner of a member.
        together: Largest number of members of a cohort.
    """
    cohort: list[MemberT] = []
    for member in members:
        learner = learner_of(member)
        row_bytes = 4 * learner.row_numbers if isinstance(learner, HasWideRows) else 0
        if cohort and (len(cohort) == together or (len(cohort) + 1) * learner.size * row_bytes > STEP_BYTES):
            yield cohort
            cohort = []
        cohort.append(member)
    if cohort:
        yield cohort
