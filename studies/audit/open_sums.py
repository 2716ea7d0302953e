"""Attack on an opened sum of statistics: whose rules are in it, and the other half of a home's rules."""

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np

from client.data.read import partition, read_all
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.tasks.rules.learner import RulesLearner
from common.arrays import Floats, Ints
from common.config.parse import parse
from common.privacy.accounts import gdp_of
from common.privacy.mechanisms import fresh_generator
from common.secure.noise import Stream, discrete_gaussian
from common.secure.quantisation import integer_clip, noise_scale, quantise
from common.tasks.closed_form import symmetric
from common.tasks.rules import ease
from common.tasks.rules.task import TASK
from common.wire.sparse_rows import expand
from studies.audit.cases import CLIENTS, DELTA, Opened
from studies.audit.members import quality
from studies.harness.row import Metrics

HELPERS, MOST = 2, 2_000
"""Number of helpers, and a number of triples that the homes do not reach."""

ROUNDING = 1e-6
"""Error of sums of values in float32."""


def attack_sum(case: Opened, seed: int, generator: Callable[[], np.random.Generator] = fresh_generator) -> Metrics:
    """Return AUC and TPR of guesses of members, and the precision of guesses of their other triples.

    A fair coin leaves each home in or out of the sum. To guess members, the attacker has all triples of the home and those of
    further homes. To guess triples, it has a random half of the triples of a home in the sum.

    An exact sum of pairs excludes a home with a pair that is not in it; of the others, the score is larger the fewer homes
    have its rarest pair. The sum also shows which triples are beside the known ones. In
    a noised sum of triples, the score of a home is the inner product with its own, less what the further homes give; its
    other triples are guessed by their sums.

    Args:
        case: Case of the attack.
        seed: Seed of the generated data, of the coins and of the known halves.
        generator: Factory of the random generator for noise and rounding.
    """
    rng, homes = np.random.default_rng(seed), _homes(seed)
    victims, others = homes[::2], homes[1::2]
    present = rng.random(len(victims)) < 0.5
    inside = [home for home, is_in in zip(victims, present, strict=True) if is_in]
    halves = [rng.permutation(home)[: len(home) // 2] for home in inside]
    counts = _sum(inside, lambda home: 1.0)
    if case.epsilon:
        opened = _noised(inside, case.epsilon, generator())
        surplus = opened - _sum(others, _weight) * len(inside) / len(others)
        scores = [surplus[home].sum() * _weight(home) for home in victims]
        guesses = [opened] * len(inside)
    else:
        pairs = _pairs(inside, counts)
        scores = [_rarity(pairs[np.ix_(home, home)].min() * len(home)) for home in victims]
        guesses = [(pairs[half] / np.maximum(counts[half, None], 1)).max(0, initial=0.0) for half in halves]
    popular = [counts - np.isin(np.arange(counts.size), home) for home in inside]
    several = [k for k, half in enumerate(halves) if len(half)]
    read, popularity = (
        fmean(_precision(found[k], inside[k], halves[k]) for k in several) for found in (guesses, popular)
    )
    return {**quality(np.array(scores), present), "precision": read, "popularity": popularity}


def _homes(seed: int) -> list[Ints]:
    """Return the ids of the triples of the training rules of each home with rules, numbered anew."""
    number = 2 * CLIENTS
    data = read_all(TASK.name, f"demo:0-{number}", seed)
    config = parse({"method": "ridge", "task": TASK.name, "seed": seed})
    started = ease.sizes(TASK.demo(), False)
    found = []
    for part in partition(data, number, unit=CLIENT_TASKS[TASK.name].unit):
        learner = build_learner(config, part)
        assert isinstance(learner, RulesLearner)
        used = expand(learner.statistics(started), ease.template(started))[ease.USED]
        found.append(np.flatnonzero(used))
    every = np.unique(np.concatenate(found))
    return [np.searchsorted(every, home) for home in found if len(home)]


def _rarity(homes: float) -> float:
    """Return the score of a home whose rarest pair has the value of so many homes of its size."""
    return 0.0 if homes < 1 - ROUNDING else 1 / homes


def _weight(home: Ints) -> float:
    """Return the value of each triple of a home in a noised sum, whose clip is 1."""
    return float(1 / np.sqrt(len(home)))


def _sum(homes: Sequence[Ints], value: Callable[[Ints], float]) -> Floats:
    """Return the sum over homes of a value at each of their triples, V."""
    total = np.zeros(MOST)
    for home in homes:
        total[home] += value(home)
    return total


def _pairs(homes: Sequence[Ints], counts: Floats) -> Floats:
    """Return the sum of pairs that the server opens, V × V; zeros for triples that no home of the sum has."""
    solved = {**ease.sizes(TASK.demo(), False), ease.TRIPLES: np.flatnonzero(counts), ease.PAIRS: np.zeros(0, np.int64)}
    none = np.zeros((0, 0, 1), np.int64)
    cells = expand(ease.statistics(solved, [(none, home) for home in homes]), ease.template(solved))[ease.GRAM]
    pairs = np.zeros((counts.size, counts.size))
    pairs[np.ix_(solved[ease.TRIPLES], solved[ease.TRIPLES])] = symmetric(cells.ravel().astype(np.float64))
    return pairs


def _noised(homes: Sequence[Ints], epsilon: float, rng: np.random.Generator) -> Floats:
    """Return the sum of triples with the noise of two helpers, V, as a run at ε opens it."""
    bound = integer_clip(MOST)
    scale = noise_scale(gdp_of(epsilon, DELTA), bound, "positive")
    total = np.zeros(MOST, np.int64)
    for home in homes:
        total += quantise(_sum([home], _weight), 1.0, bound, "positive", rng)
    for _ in range(HELPERS):
        total += discrete_gaussian(scale, MOST, Stream(rng.bytes(32)))
    return np.asarray(total / bound, np.float64)


def _precision(scores: Floats, home: Ints, half: Ints) -> float:
    """Return the share of a home's unknown triples among as many unknown ones of the largest scores."""
    left = np.where(np.isin(np.arange(scores.size), half), -np.inf, scores)
    hidden = np.setdiff1d(home, half)
    return float(np.isin(np.argsort(-left, kind="stable")[: len(hidden)], hidden).mean())
