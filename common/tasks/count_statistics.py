"""Statistics summed over clients from which a model starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from common.arrays import Arrays
from common.tasks.vocabulary import Vocabulary

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


def _unlabelled(sums: Arrays, noise: float) -> Arrays:
    return sums


@dataclass(frozen=True)
class CountStatistics(Generic[VocabularyT]):
    """Statistics summed over clients from which a model starts.

    Args:
        check: Accept one client's statistics under the vocabulary; raises WireError.
        add: Sum the statistics of several clients.
        template: Zeros of the sums' names, shapes and dtypes; None if secure sums cannot carry them.
        clip: Largest L2 norm of a client's statistics in secure sums with noise.
        largest: Largest single number in them; none is negative.
        label: Sums and the standard deviation of their noise -> statics of the model.
    """

    check: Callable[[Arrays, VocabularyT], None]
    add: Callable[[Sequence[Arrays]], Arrays]
    template: Callable[[VocabularyT], Arrays] | None = None
    clip: float = 1.0
    largest: float = 1.0
    label: Callable[[Arrays, float], Arrays] = _unlabelled
