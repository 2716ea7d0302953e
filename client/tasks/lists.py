"""Lists of recommended items: filters, order, titles, and counts over clients that a reason may state."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.arrays import Array, Flags, Floats, Ints
from common.errors import DataError
from common.text import one_name

Titles = Mapping[str, str]
"""Id of an item -> its title; items without a title are absent."""

NO_TITLES: Titles = {}


def title_of(item: str, titles: Titles) -> str:
    """Return the title of an item, or its id without one."""
    return titles.get(item, item)


def label_of(item: str, titles: Titles) -> str:
    """Return id and title of an item."""
    return f"{item} {titles.get(item, '')}".rstrip()


MAX_BYTES = 64 * 2**20
"""Largest file of names."""


@dataclass(frozen=True, eq=False)
class ItemFilter:
    """Items that a list may contain, as indices into the vocabulary.

    Args:
        hides_seen: True if items that the owner's records contain are left out.
        excluded: Items to leave out.
        only: Items to choose from; None: all.
    """

    hides_seen: bool
    excluded: Ints
    only: Ints | None = None

    @classmethod
    def seen(cls, *, hide: bool) -> "ItemFilter":
        """Return the filter that leaves out nothing, or seen items only."""
        return cls(hide, np.zeros(0, np.int64))

    def allowed(self, count: int, seen: Ints) -> Flags:
        """Return the mask of the items that a list may contain, out of `count`."""
        allowed = np.full(count, self.only is None)
        allowed[self.only if self.only is not None else []] = True
        allowed[self.excluded] = False
        allowed[seen if self.hides_seen else []] = False
        return allowed

    def reason_of_none(self, count: int, seen: Ints) -> str:
        """Return the reason why the list is empty."""
        reasons = [f"{len(np.unique(seen))} are seen already"] if self.hides_seen and len(seen) else []
        reasons += [f"--exclude names {len(self.excluded)}"] if len(self.excluded) else []
        reasons += [f"--only names {len(self.only)}"] if self.only is not None else []
        return f"no item is left of {count}" + (f": {', '.join(reasons)}" if reasons else "")


UNSEEN = ItemFilter.seen(hide=True)
"""Filter of items that the owner's records do not contain, the default of ratings and markets."""


def read_items(path: Path, names: Sequence[str]) -> tuple[Ints, int]:
    """Read items from a text file in UTF-8 with one name per line.

    Args:
        path: The file; empty lines do not count.
        names: Names of all items.

    Returns:
        Indices of the items, ascending, and the number of lines that name none.

    Raises:
        DataError: The file cannot be read, is too large, is no text, or names no item.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"{error.strerror}; give a file with one item per line", path) from None
    if len(content) > MAX_BYTES:
        raise DataError(f"is larger than {MAX_BYTES >> 20} MiB; split it", path)
    try:
        lines = [one_name(line) for line in content.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise DataError("is not text in UTF-8; save it as UTF-8", path) from None
    index = {name: k for k, name in enumerate(names)}
    listed = {line for line in lines if line}
    places = sorted(index[line] for line in listed if line in index)
    if not places:
        raise DataError(f"names none of the {len(names)} items; give one item per line, as in the vocabulary", path)
    return np.array(places, np.int64), len(listed) - len(places)


POOL = 10
"""Number of candidates per shown one among which diversification chooses."""


def best_first(scores: Array, allowed: Flags) -> Ints:
    """Return the flat indices of the allowed candidates, best first; ties by index, NaN left out."""
    values = scores.ravel()
    candidates = np.flatnonzero(allowed.ravel() & ~np.isnan(values))
    ordered: Ints = candidates[np.argsort(-values[candidates], kind="stable")]
    return ordered


def diversify(similarity: Floats, weight: float, top: int) -> Ints:
    """Choose `top` of n ranked candidates by maximal marginal relevance on ranks.

    The method is that of Carbonell & Goldstein (1998). Each step takes the candidate with the largest
    λ·(1 − rank/n) − (1 − λ)·(largest similarity to a chosen one); ties by rank.

    Args:
        similarity: Similarity in [0, 1] of the candidates in the order of their ranks, n × n.
        weight: Weight λ of the rank in [0, 1]; 1 keeps the order.
        top: Number of candidates to choose.
    """
    count = len(similarity)
    relevance, nearest = 1 - np.arange(count) / max(count, 1), np.zeros(count)
    chosen: list[int] = []
    for _ in range(min(top, count)):
        values = weight * relevance - (1 - weight) * nearest
        values[chosen] = -np.inf
        chosen.append(int(values.argmax()))
        nearest = np.maximum(nearest, similarity[chosen[-1]])
    return np.array(chosen, np.int64)


def two_digits(score: float) -> float:
    """Round a score to two digits after the decimal point, or to two significant ones below a tenth."""
    return round(score, 2) if abs(score) >= 0.1 else float(f"{score:.2g}")


LEARNT = "learnt by the federation"
"""Reason where neither own data nor a released count gives one."""

MIN_COUNT = 10
"""Smallest count that is stated."""


def about(count: float) -> str:
    """Return a released count rounded to tens: `about 30`; empty if it is too small."""
    return f"about {10 * math.floor(count / 10 + 0.5):,}" if MIN_COUNT <= count < math.inf else ""
