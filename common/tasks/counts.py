"""Statistics summed over clients, from which a model starts; sparse counts of ordered pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError
from common.privacy.vectors import Sign
from common.tasks.options import ModelVariant
from common.tasks.vocabulary import Vocabulary

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


LEAST_RATIO = 100.0
"""Least ratio of the largest sum of all clients to the noise, unless a task has its own."""

LEAST_VISIBLE = 0.75
"""Share of the counts' variance that noise has to leave, for `count-offset = auto` to start from them."""


def _bounded(counts: Arrays) -> Arrays:
    return {name: np.minimum(a, 1.0) for name, a in counts.items()}


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
    label: Callable[[Arrays, float], Arrays] = lambda sums, noise: sums
    pack: Callable[[Arrays, Arrays], Arrays] = lambda counts, template: counts
    used: Callable[[Any, ModelVariant], bool] = lambda options, model: True
    visible: Callable[[Arrays, VocabularyT], float] = lambda statics, vocabulary: 1.0


def pair_statistics(
    check: Callable[[Arrays, int], None],
    add: Callable[[Sequence[Arrays]], Arrays],
    zeros: Callable[[int], Arrays],
    label: Callable[[Arrays, float], Arrays],
    pack: Callable[[Arrays, Arrays], Arrays],
) -> CountStatistics[Any]:
    """Return statistics of pairs of items, which depend on the number of items alone.

    `check` gets the number of items, and `zeros` returns zero counts of all their pairs.
    """
    return CountStatistics(
        lambda counts, vocabulary: check(counts, len(vocabulary.items)),
        add,
        lambda _, vocabulary: zeros(len(vocabulary.items)),
        label=label,
        pack=pack,
    )


MIN_COUNT = 1e-3
"""Threshold below which a sum is a rounding error and counts as 0.

A sequential rule adds at least 1/20; a pair of items adds 1, or .16 if the contribution of a user is bounded.
"""


def sum_by_key(keys: Sequence[Array], values: Sequence[Array]) -> tuple[Array, Array]:
    """Return each key once, ascending, with the float64 sum of its values; zero sums are left out."""
    keys_once, index = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.bincount(index, np.concatenate(values), minlength=len(keys_once))
    is_counted = sums > MIN_COUNT
    return keys_once[is_counted], sums[is_counted]


def check_sparse(keys: Array, values: Array, items: int, noun: str, *, below: bool = False) -> None:
    """Check the keys and values of a client's counts.

    Args:
        keys: Keys a·V + b, 1-D.
        values: Counts, 1-D, as many as keys.
        items: Number V of items.
        noun: Noun of a key in messages, such as `pairs`.
        below: True if every key must have a < b.

    Raises:
        WireError: Keys are out of range or order, or values are not positive finite float32.
    """
    ordered = keys.dtype == np.int64 and bool((np.diff(keys) > 0).all())
    inside = ordered and (not len(keys) or 0 <= keys[0] <= keys[-1] < items**2)
    if not inside or (below and (keys // items >= keys % items).any()):
        raise WireError(f"counts: {noun} are out of order, or of items that the vocabulary lacks")
    if values.dtype != np.float32 or not (np.isfinite(values) & (values > 0)).all():
        raise WireError("counts: values are not positive finite numbers")
