"""From clicks in any order to sessions."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from client.data.tables.codes import Codes, combine_codes
from common.arrays import Flags, Floats

Seconds = Floats


@dataclass(frozen=True)
class Cut:
    """Begin of a user's next session: after a gap without clicks, or at the next window of UTC."""

    by: Literal["gap", "window"]
    seconds: float


GAP = Cut("gap", 30 * 60)
DAY = Cut("window", 24 * 60 * 60)
"""Gowalla's user-day (§2.5)."""
EIGHT_HOURS = Cut("window", 8 * 60 * 60)
"""LastFM's (§2.5)."""


def sessions_by_name(owner: Codes, name: Codes, part: Codes, time: Seconds) -> tuple[Codes, Codes]:
    """Return rows in order, R, and their sessions' numbers, R: one per owner, name and part.

    Equal times are ordered as in the file.
    """
    _, first, key = np.unique(combine_codes(owner, name, part), return_index=True, return_inverse=True)
    start = np.full(len(first), np.inf)
    np.minimum.at(start, key, time)
    order = np.lexsort((time, first[key], start[key]))
    return order, _numbered(key[order])


def sessions_by_cut(owner: Codes, part: Codes, time: Seconds, cut: Cut) -> tuple[Codes, Codes]:
    """Return the same for sessions without names: a new one after a gap, or in another window."""
    order = np.lexsort((time, combine_codes(owner, part)))
    window = np.floor(time / cut.seconds)[order] if cut.by == "window" else np.cumsum(_after_gap(time[order], cut))
    return order, _numbered(owner[order], part[order], window)


def _after_gap(time: Seconds, cut: Cut) -> Flags:
    return np.diff(time, prepend=time[:1]) > cut.seconds


def _numbered(*columns: NDArray[np.generic]) -> Codes:
    """Return numbers, from 0, of runs of rows that are equal in all columns."""
    changes = [column[1:] != column[:-1] for column in columns]
    return np.concatenate([[0], np.cumsum(np.any(changes, axis=0))])[: len(columns[0])]
