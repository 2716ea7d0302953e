"""Statistics summed over clients from which a model starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from common.arrays import Arrays
from common.secure.terms import Sign
from common.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    from common.tasks.spec import ModelVariant

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


LEAST_RATIO = 100.0
"""Least ratio of the largest sum of all clients to the noise, unless a task has its own."""

LEAST_VISIBLE = 0.75
"""Share of the counts' variance that noise has to leave, for `count-offset = auto` to start from them."""


class HasItems(Protocol):
    """Vocabulary with a list of items."""

    items: tuple[str, ...]
    """Ids of the V items."""


def _unlabelled(sums: Arrays, noise: float) -> Arrays:
    return sums


def _unpacked(counts: Arrays, template: Arrays) -> Arrays:
    return counts


def _bounded(counts: Arrays) -> Arrays:
    return {name: np.minimum(a, 1.0) for name, a in counts.items()}


def _always_used(options: Any, model: "ModelVariant") -> bool:
    return True


def _all_visible(statics: Arrays, vocabulary: Vocabulary) -> float:
    return 1.0


@dataclass(frozen=True)
class CountStatistics(Generic[VocabularyT]):
    """Statistics summed over clients from which a model starts.

    Args:
        check: Accept one client's statistics under the vocabulary; raises WireError.
        add: Sum the statistics of several clients.
        template: (options, vocabulary) -> zeros of the names, shapes and dtypes of a client's vector in secure
            sums; None if these cannot carry the statistics.
        clip: Largest L2 norm of a client's vector in secure sums with noise; 0 if these sums are exact only.
        sign: `positive` if no number of this vector is negative, else `signed`.
        bound: This vector -> its form in sums with noise; by default each number is at most 1.
        least_ratio: Ratio of the largest sum of all clients to the noise, for `count-offset = auto` to sum counts.
        label: (opened sums, standard deviation of their noise) -> statics of the model.
        pack: (statistics, template) -> this vector; by default the statistics themselves.
        used: (options, model variant) -> True if the model starts from such counts; `count-offset = auto` leaves them
            out where it does not.
        visible: (statics of the model, vocabulary) -> estimated share of the counts' variance that noise leaves, 0 to 1.
    """

    check: Callable[[Arrays, VocabularyT], None]
    add: Callable[[Sequence[Arrays]], Arrays]
    template: Callable[[Any, VocabularyT], Arrays] | None = None
    clip: float = 0.0
    sign: Sign = "positive"
    bound: Callable[[Arrays], Arrays] = _bounded
    least_ratio: float = LEAST_RATIO
    label: Callable[[Arrays, float], Arrays] = _unlabelled
    pack: Callable[[Arrays, Arrays], Arrays] = _unpacked
    used: Callable[[Any, "ModelVariant"], bool] = _always_used
    visible: Callable[[Arrays, VocabularyT], float] = _all_visible


def pair_statistics(
    check: Callable[[Arrays, int], None],
    add: Callable[[Sequence[Arrays]], Arrays],
    zeros: Callable[[int], Arrays],
    label: Callable[[Arrays, float], Arrays],
    pack: Callable[[Arrays, Arrays], Arrays],
) -> CountStatistics[Any]:
    """Return statistics of pairs of items, which depend on the number of items alone.

    Args:
        check: As in `CountStatistics`, under the number of items.
        add: As in `CountStatistics`.
        zeros: Number of items -> zero counts of all pairs.
        label: As in `CountStatistics`.
        pack: As in `CountStatistics`.
    """

    def checked(counts: Arrays, vocabulary: HasItems) -> None:
        check(counts, len(vocabulary.items))

    def template(_: Any, vocabulary: HasItems) -> Arrays:
        return zeros(len(vocabulary.items))

    return CountStatistics(checked, add, template, label=label, pack=pack)
