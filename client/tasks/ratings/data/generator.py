"""Embedded demo raters: films differ in quality and fame, people in mildness and taste.

A rating is a person's own level, the film's quality, the match of both along a few hidden tastes, and a mood, rounded to
one of five stars. Famous films are seen more often and are somewhat better, as in MovieLens.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from client.data.dataset import own_rng
from client.tasks.ratings.data.raters import Rater
from common.arrays import Floats
from common.tasks.ratings.vocabulary import demo_products

TASTES = 3
"""Hidden dimensions."""
LEVEL, QUALITY, TASTE, MOOD = 0.4, 0.6, 0.3, 0.7
"""Standard deviations in stars: of people's levels, films' qualities, the match, and what is left."""
MIDDLE = 3.5
"""Stars of a usual film by a usual person."""
FEWEST, TYPICAL = 8, 32
"""Ratings of a person: the fewest, and the median."""


class Cinema(NamedTuple):
    """Films that all raters share, whatever the seed.

    Args:
        quality: I, in stars.
        traits: I × TASTES.
        fame: I, chances of being seen next; sums to 1.
    """

    quality: Floats
    traits: Floats
    fame: Floats


def demo_raters(start: int, stop: int, seed: int) -> tuple[Rater, ...]:
    """Generate raters number start … stop−1; each depends on (seed, name) only."""
    return tuple(_rater(f"rater-{number:05d}", seed) for number in range(start, stop))


@cache
def demo_cinema() -> Cinema:
    """Return the films."""
    rng, size = np.random.default_rng(41), len(demo_products().items)
    quality = rng.normal(0, QUALITY, size)
    traits = rng.normal(0, np.sqrt(TASTE / np.sqrt(TASTES)), (size, TASTES))
    fame = np.exp(rng.normal(0, 1.0, size) + 0.5 * quality / QUALITY)
    return Cinema(quality, traits, fame / fame.sum())


def _rater(name: str, seed: int) -> Rater:
    rng, cinema = own_rng(seed, name), demo_cinema()
    size = len(cinema.fame)
    count = int(np.clip(TYPICAL * rng.lognormal(0, 0.6), FEWEST, size // 2))
    items = np.sort(rng.choice(size, count, replace=False, p=cinema.fame))
    taste = rng.normal(0, np.sqrt(TASTE / np.sqrt(TASTES)), TASTES)
    stars = MIDDLE + rng.normal(0, LEVEL) + cinema.quality[items] + cinema.traits[items] @ taste
    return Rater(name, items, np.clip(np.round(stars + rng.normal(0, MOOD, count)), 1, 5))
