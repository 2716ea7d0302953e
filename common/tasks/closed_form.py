"""Models that follow from sums over clients in closed form, as methods without training use them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from common.arrays import Arrays
from common.tasks.vocabulary import Vocabulary

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


@dataclass(frozen=True)
class ClosedForm(Generic[VocabularyT]):
    """Closed form of a task: a few sums over the clients, each of which may depend on the earlier ones.

    A client's statistics are arrays of fixed names and shapes. What was solved so far is sent to the clients with the next
    request, and is the model in the end.

    Args:
        sums: Number of sums; one less if λ is given.
        noised_sums: Number of sums in runs with noise, among which the budget is divided.
        start: (vocabulary, True in runs with noise) -> what is known before the first sum, such as sizes.
        template: What is solved so far -> zeros of the names, shapes and dtypes of a client's next statistics. Tables may be
            sent as rows.
        solve: (what is solved so far, next sums in float64, strength λ of the ridge or 0 if clients choose it) -> what is
            solved after these sums.
    """

    sums: int
    noised_sums: int
    start: Callable[[VocabularyT, bool], Arrays]
    template: Callable[[Arrays], Arrays]
    solve: Callable[[Arrays, Arrays, float], Arrays]


AnyClosedForm = ClosedForm[Any]
"""Closed form of any vocabulary."""
