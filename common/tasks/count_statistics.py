"""Statistics summed over clients from which a model starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from common.arrays import Arrays
from common.tasks.vocabulary import Vocabulary

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


def _unlabelled(sums: Arrays, noise: float) -> Arrays:
    return sums


def _unpacked(counts: Arrays, template: Arrays) -> Arrays:
    return counts


@dataclass(frozen=True)
class CountStatistics(Generic[VocabularyT]):
    """Statistics summed over clients from which a model starts.

    Args:
        check: Accept one client's statistics under the vocabulary; raises WireError.
        add: Sum the statistics of several clients.
        template: (options, vocabulary) -> zeros of the names, shapes and dtypes of a client's vector in secure
            sums; None if these cannot carry the statistics.
        clip: Largest L2 norm of a client's vector in secure sums with noise; 0 if these sums are exact only.
        largest: Largest single number in it, with noise; none is negative.
        label: (opened sums, standard deviation of their noise) -> statics of the model.
        pack: (statistics, template) -> this vector; by default the statistics themselves.
    """

    check: Callable[[Arrays, VocabularyT], None]
    add: Callable[[Sequence[Arrays]], Arrays]
    template: Callable[[Any, VocabularyT], Arrays] | None = None
    clip: float = 0.0
    largest: float = 1.0
    label: Callable[[Arrays, float], Arrays] = _unlabelled
    pack: Callable[[Arrays, Arrays], Arrays] = _unpacked
