"""Embedded demo sites: sixteen weeks of hourly volumes of roads of three kinds, sound or broken."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from client.tasks.traffic.data.series import Series
from common.arrays import Flags, Floats, Ints

WEEKS = 16
DAYS = 7 * WEEKS
HOURS = 24 * DAYS
START = np.datetime64("2024-01-01T00:00", "m")
"""A Monday."""

HOLIDAYS = 4
"""Working days with the traffic of a Sunday, all before the part of the series that is held out."""
LAST_HOLIDAY = 7 * 12
INCIDENTS = 4
"""Mean number at a site, each of 2 to 5 hours."""


class Kind(NamedTuple):
    """A kind of road.

    Args:
        bumps: Rush hours of a working day, Saturday and Sunday: (hour, width in hours, height) each.
        base: Height at night.
        level: Vehicles in an hour at height 1.
        weather: How much the weather matters.
    """

    bumps: tuple[tuple[tuple[float, float, float], ...], ...]
    base: float
    level: float
    weather: float


COMMUTER = Kind(
    (((8, 1.4, 1.0), (13, 3.0, 0.45), (17, 1.8, 1.1)), ((13, 3.5, 0.6),), ((14, 3.5, 0.5),)), 0.04, 1200, 0.6
)
FREIGHT = Kind((((10, 3.5, 0.8), (15, 3.0, 0.7)), ((10, 3.0, 0.35),), ((19, 4.0, 0.2),)), 0.15, 500, 0.2)
LEISURE = Kind(
    (((12, 3.5, 0.4), (19, 2.5, 0.35)), ((11, 2.5, 0.8), (16, 3.0, 1.0)), ((11, 2.5, 0.8), (17, 2.5, 1.2))),
    0.03,
    700,
    1.5,
)
KINDS = (COMMUTER, FREIGHT, LEISURE)
"""Site k is of kind k modulo 3."""


class World(NamedTuple):
    """Shape of each day (0 working, 1 Saturday, 2 Sunday) and log of the weather, the same for all sites."""

    shape: Ints
    weather: Floats


def demo_series(start: int, stop: int, seed: int) -> tuple[Series, ...]:
    """Generate sites number start … stop−1; site k depends on (seed, k) only."""
    world = _world(np.random.default_rng([seed, 0, 1]))
    return tuple(_site(k, world, np.random.default_rng([seed, k])) for k in range(start, stop))


def _world(rng: np.random.Generator) -> World:
    shape = np.tile([0, 0, 0, 0, 0, 1, 2], WEEKS)
    working = np.flatnonzero(shape[:LAST_HOLIDAY] == 0)
    shape[rng.choice(working, HOLIDAYS, replace=False)] = 2
    return World(shape, _drift(DAYS, 0.7, 0.06, rng))


def _site(number: int, world: World, rng: np.random.Generator) -> Series:
    kind = KINDS[number % len(KINDS)]
    level = kind.level * rng.lognormal(0, 0.5)
    usual = _profile(kind, rng)[world.shape].ravel()
    daily = kind.weather * world.weather + _drift(DAYS, 0.8, 0.08, rng)
    hourly = np.interp(np.arange(HOURS), 24 * np.arange(DAYS) + 12, daily)  # between the noons of days
    log = hourly + _drift(HOURS, 0.9, 0.05, rng)
    volume = rng.poisson(level * usual * np.exp(log) * _incidents(rng)).astype(np.float64)
    return Series(f"site-{number:05d}", START, volume[:, None], np.ones((HOURS, 1), bool))


def _profile(kind: Kind, rng: np.random.Generator) -> Floats:
    """Return mean heights, 3 shapes × 24 hours, with rush hours of the site's own time and height."""
    hour = np.arange(24) + 0.5
    shapes = []
    for bumps in kind.bumps:
        middle, width, height = np.array(bumps).T[..., None]
        middle, height = middle + rng.normal(0, 0.4, middle.shape), height * rng.lognormal(0, 0.15, height.shape)
        apart = (hour - middle + 12) % 24 - 12
        shapes.append(kind.base + (height * np.exp(-0.5 * (apart / width) ** 2)).sum(axis=0))
    return np.array(shapes)


def _drift(length: int, keep: float, std: float, rng: np.random.Generator) -> Floats:
    """Return a stationary first-order autoregression with coefficient `keep`."""
    memory = keep ** np.arange(int(np.ceil(-7 / np.log(keep))))
    fresh = rng.normal(0, std * np.sqrt(1 - keep**2), length + len(memory) - 1)
    return np.convolve(fresh, memory, "valid")


def _incidents(rng: np.random.Generator) -> Floats:
    """Return the share of usual traffic by hour; incidents lower it."""
    share = np.ones(HOURS)
    for begin in rng.integers(HOURS, size=rng.poisson(INCIDENTS)).tolist():
        share[begin : begin + int(rng.integers(2, 6))] *= rng.uniform(0.1, 0.6)
    return share


GREEN_HOURS = 2
"""Hours of a street's cycle, in one of which its light lets most vehicles through."""

GREEN_SHARE = 0.85
"""Share of a cycle's vehicles in that hour."""

GREEN_STREAM = 8
"""Stream of random numbers of the lights, apart from those of the sites."""


def street_series(start: int, stop: int, seed: int) -> tuple[Series, ...]:
    """Generate streets number start … stop−1, on which vehicles pass in platoons.

    The hour of a platoon is random, so every cycle has a peak, and the mean of a forecast has none: accurate forecasts
    violate the property that readings reach a level in each cycle (Fig 3 of the paper, on simulated streets). Street k depends
    on (seed, k) only.
    """
    sites = enumerate(demo_series(start, stop, seed), start)
    return tuple(_with_lights(site, np.random.default_rng([seed, k, GREEN_STREAM])) for k, site in sites)


def _with_lights(site: Series, rng: np.random.Generator) -> Series:
    cycles = site.values.reshape(-1, GREEN_HOURS).sum(axis=1)
    green = rng.integers(GREEN_HOURS, size=len(cycles))
    share = np.full((len(cycles), GREEN_HOURS), (1 - GREEN_SHARE) / (GREEN_HOURS - 1))
    share[np.arange(len(cycles)), green] = GREEN_SHARE
    return replace(site, values=np.rint(cycles[:, None] * share).reshape(-1, 1))


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
