"""Demo sites of which two in three break.

Of each three one is sound, one loses most of its past, and one reports wrong readings at the end.

The readings are those of the demo sites. Faults are known afterwards: what was read then is no truth and nothing is fitted to
it, but a forecast reads it in its history, as it would on that day.
"""

from dataclasses import replace

import numpy as np

from client.tasks.traffic.data.generator import HOURS, demo_series
from client.tasks.traffic.data.series import Series
from common.arrays import Flags, Floats

SOUND, INTERRUPTED, FAULTY = range(3)
"""Fault of site k, by k modulo 3: none, most of the training part lost, wrong readings afterwards."""

END_OF_TRAINING = 24 * 90
"""Hour at which the demo's training part ends."""

WEEK = 24 * 7
KEPT_WEEKS = 2
WRONG_SHARE = 0.1
"""Share of wrong readings, each too high by twice the largest reading."""

STREAM = 7
"""Stream of random numbers of the faults, apart from those of the sites."""


def breaking_series(start: int, stop: int, seed: int) -> tuple[Series, ...]:
    """Generate sites number start … stop−1 with their faults; site k depends on (seed, k) only."""
    sites = enumerate(demo_series(start, stop, seed), start)
    return tuple(_break(site, k % 3, np.random.default_rng([seed, k, STREAM])) for k, site in sites)


def _break(site: Series, fault: int, rng: np.random.Generator) -> Series:
    values = site.values.copy()
    lost, wrong = _lost(fault, rng), _wrong(fault, rng)
    values[wrong] += 2 * values.max()
    values[lost] = 0
    return replace(site, values=values, observed=site.observed & ~(lost | wrong)[:, None])


def _lost(fault: int, rng: np.random.Generator) -> Flags:
    """Return the hours without readings: all of the training part but some weeks in a row."""
    lost = np.zeros(HOURS, bool)
    if fault == INTERRUPTED:
        first = WEEK * int(rng.integers(END_OF_TRAINING // WEEK - KEPT_WEEKS))
        lost[:END_OF_TRAINING] = True
        lost[first : first + KEPT_WEEKS * WEEK] = False
    return lost


def _wrong(fault: int, rng: np.random.Generator) -> Flags:
    """Return the hours with wrong readings: some of those after the training part."""
    drawn: Floats = rng.random(HOURS)
    return (drawn < WRONG_SHARE) & (np.arange(HOURS) >= END_OF_TRAINING) & (fault == FAULTY)
