"""Filters of recommended items: seen ones, a list to leave out, a list to choose from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.arrays import Flags, Ints
from common.errors import DataError

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
        lines = [line.strip() for line in content.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise DataError("is not text in UTF-8; save it as UTF-8", path) from None
    index = {name: k for k, name in enumerate(names)}
    listed = {line for line in lines if line}
    places = sorted(index[line] for line in listed if line in index)
    if not places:
        raise DataError(f"names none of the {len(names)} items; give one item per line, as in the vocabulary", path)
    return np.array(places, np.int64), len(listed) - len(places)
