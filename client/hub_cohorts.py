"""Cohorts of a hub's clients, and their training."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from client.training.cohort_size import split_cohort
from client.training.participant import Participant
from common.methods.spec import MethodOptions
from common.wire.messages import TrainReply

Cohort = Sequence[tuple[str, Participant]]
"""Clients that train together, with their names."""

TrainCohorts = Callable[[MethodOptions, Sequence[Cohort]], Iterable[Sequence[TrainReply | Exception]]]
"""Returns the outcome of each client of each cohort, or raises a RunError and changes no state."""


def split(ready: list[tuple[str, Participant]], together: int) -> Iterator[Cohort]:
    """Yield cohorts of clients with equal steps and data of similar size, which need little padding."""
    ready.sort(key=lambda pair: (pair[1].steps, pair[1].learner.size))
    for _, equal in groupby(ready, key=lambda pair: pair[1].steps):
        yield from split_cohort(list(equal), lambda pair: pair[1].learner, together)
