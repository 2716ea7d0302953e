"""Opened boxes of the newest sums, in memory only."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from common.secure.terms import SumTerms

MOST_RUNS = 16
"""Maximum number of runs in memory."""

MOST_ROUNDS = 2
"""Maximum number of rounds of a run and a channel in memory."""

MOST_SUMS = MOST_RUNS * MOST_ROUNDS * 4
"""Maximum number of sums in memory."""


@dataclass(frozen=True)
class PreparedSum:
    """Opened boxes of one sum."""

    digest: str
    """Digest of the terms."""
    seeds: dict[str, bytes]
    """Client -> seed of its mask."""
    boxes: dict[str, str]
    """Client -> sealed box of that seed."""


class PreparedSums:
    """Prepared sums; the oldest rounds of a channel, the oldest runs and the oldest sums are dropped."""

    def __init__(self) -> None:
        self._sums: OrderedDict[tuple[str, int, str], PreparedSum] = OrderedDict()
        self._lock = Lock()

    def find(self, terms: SumTerms) -> PreparedSum | None:
        """Return the newest prepared sum of a round and a channel."""
        with self._lock:
            return self._sums.get(_place(terms))

    def keep(self, terms: SumTerms, prepared: PreparedSum) -> None:
        """Store a prepared sum."""
        place = _place(terms)
        with self._lock:
            self._sums.pop(place, None)
            self._sums[place] = prepared
            rounds = [key for key in self._sums if key[::2] == place[::2]]
            runs = list(OrderedDict.fromkeys(run for run, _, _ in reversed(self._sums)))
            for key in [key for key in self._sums if key in rounds[:-MOST_ROUNDS] or key[0] in runs[MOST_RUNS:]]:
                del self._sums[key]
            while len(self._sums) > MOST_SUMS:
                self._sums.popitem(last=False)


def _place(terms: SumTerms) -> tuple[str, int, str]:
    return terms.run, terms.round, terms.channel
