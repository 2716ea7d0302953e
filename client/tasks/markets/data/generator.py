"""Embedded demo markets: one catalogue, very different sizes, tastes that overlap but differ.

In every market people buy sets, things of one kind for one shelf, with a few strays by popularity. What belongs together is
the same everywhere; which items a market sells, and how much it likes each, is its own. A small market therefore lacks
evidence that the large ones have.
"""

from dataclasses import dataclass

import numpy as np

from client.tasks.markets.data.markets import Market, as_ratings, no_rows
from common.arrays import Floats, Ints
from common.errors import DataError
from common.tasks.markets.vocabulary import demo_market_catalogue, set_size

SIZES = {"north": 1500, "coast": 700, "hills": 320, "lakes": 150, "isles": 80, "cape": 45}
"""Buyers of each market, the largest first."""
SOLD = {"north": 0.95, "coast": 0.85, "hills": 0.7, "lakes": 0.6, "isles": 0.45, "cape": 0.35}
"""Share of the catalogue that it sells."""

LEAST = 5
"""Ratings of a buyer, as in a 5-core set."""
MEAN_EXTRA = 2.0
ASTRAY = 0.25
"""Chance that a rating is of anything sold, by popularity, and not of a set the buyer is after."""
TASTE = 0.8
"""Standard deviation of the logarithm of popularity among markets."""


@dataclass(frozen=True, eq=False)
class Stall:
    """Assortment of a market.

    Args:
        sets: Items of each set that are sold, empty where none is.
        wanted: Popularity of every item of the catalogue, 0 where it is not sold; sums to 1.
        liked: Popularity of the sets; sums to 1.
    """

    sets: list[Ints]
    wanted: Floats
    liked: Floats


def demo_markets(start: int, stop: int, seed: int) -> tuple[Market, ...]:
    """Generate markets number start … stop−1; market k depends on (seed, k) only.

    Raises:
        DataError: There are fewer markets.
    """
    if stop > len(SIZES):
        raise DataError(f"demo:{start}-{stop} exceeds the {len(SIZES)} demo markets; choose fewer")
    return tuple(
        _market(name, np.random.default_rng([seed, 6, k])) for k, name in enumerate(SIZES) if start <= k < stop
    )


def _market(name: str, rng: np.random.Generator) -> Market:
    stall = _stall(SOLD[name], rng)
    rows = [(user, item) for user in range(SIZES[name]) for item in _bought(stall, rng)]
    return Market(name, as_ratings(np.array(rows, np.int64)), no_rows())


def _stall(share: float, rng: np.random.Generator) -> Stall:
    """Build the stall of a market; popularity is that of the catalogue times a random taste."""
    size = len(demo_market_catalogue().items)
    fame = np.random.default_rng(6).permutation(1 / np.arange(1, size + 1) ** 0.7)
    wanted = fame * np.exp(TASTE * rng.standard_normal(size)) * (rng.random(size) < share)
    sets = [k + np.flatnonzero(wanted[k : k + set_size()]) for k in range(0, size, set_size())]
    liked = np.array([wanted[items].sum() for items in sets])
    return Stall(sets, wanted / wanted.sum(), liked / liked.sum())


def _bought(stall: Stall, rng: np.random.Generator) -> set[int]:
    """Draw the items of one buyer: from about two sets, and single ones."""
    after = rng.choice(len(stall.sets), size=2, replace=False, p=stall.liked)
    pool = np.concatenate([stall.sets[k] for k in after])
    count = LEAST + int(rng.poisson(MEAN_EXTRA))
    chosen: set[int] = set()
    for _ in range(4 * count):  # a small set may be bought out
        if len(chosen) < count:
            stray = rng.random() < ASTRAY
            chosen.add(int(rng.choice(len(stall.wanted), p=stall.wanted) if stray else rng.choice(pool)))
    return chosen
