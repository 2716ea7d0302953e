"""Recommendations by the counts of embedded homes alone, in one sum of two helpers."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from client.data.read import read_all
from client.tasks.rules.data.homes import SplitHome, split_homes
from common.arrays import Array, Arrays, Floats, Ints
from common.privacy.accounts import gdp_of
from common.secure.noise import Stream, discrete_gaussian
from common.secure.quantisation import integer_clip, noise_scale, quantise
from common.tasks.rules.counts import COUNTS, NOISE, label, offset_of, visible_share
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import RuleCatalogue
from studies.harness.row import Trial
from studies.rules.experiments import EXACT, METRICS, RATIO, SUM_DELTA, UNKNOWN, VISIBLE
from studies.rules.measure import allowed_triples, measure, types_of

HELPERS = 2
MEASURED = 2_000
"""Largest number of homes on which recommendations are measured, the first of them."""


def measure_counts(key: str, seed: int) -> Trial:
    """Measure the recommendations of the counts of one row alone, without training."""
    number, _, kind = key.removesuffix(UNKNOWN).partition("-")
    catalogue, splits = TASK.demo(), _splits(int(number), seed)
    if key.endswith(UNKNOWN):
        catalogue = catalogue.model_copy(update={"notices": {}, "does": {}})
    counts = _exact(splits, catalogue) if kind == EXACT else _noised(splits, catalogue, float(kind), seed)
    offset = offset_of(counts, catalogue)  # the learner adds it to the logits of every rule

    def score(split: SplitHome) -> NDArray[np.floating]:
        types = types_of(split)
        logits: NDArray[np.floating] = offset[0][types][:, None] + offset[1][types][None, :]
        return logits

    valid = allowed_triples(splits, len(catalogue.entities), len(catalogue.relations))
    found = measure(splits[:MEASURED], score, valid)
    return Trial({name: found[name] for name in METRICS})


def measure_visible(splits: Sequence[SplitHome], catalogue: RuleCatalogue, epsilon: float, seed: int) -> Trial:
    """Measure the share of variance that noise leaves to counts, and the ratio of homes to noise."""
    sums = _noised(splits, catalogue, epsilon, seed)
    statistics = TASK.counts
    assert statistics is not None
    ratio = len(splits) * statistics.clip / float(sums[NOISE].item())
    return Trial({VISIBLE: visible_share(sums, catalogue), RATIO: ratio})


@cache
def _splits(homes: int, seed: int) -> tuple[SplitHome, ...]:
    dataset = read_all(TASK.name, f"demo:0-{homes}", seed)
    return split_homes(dataset.units, len(dataset.vocabulary.relations), RulesOptions(negatives=1), seed)


def _counts_of(split: SplitHome, catalogue: RuleCatalogue) -> Array:
    """Return the counts of a home's training rules, 2 × F × R."""
    counts = np.zeros((2, len(catalogue.entities), len(catalogue.relations)))
    rules, types = split.train.positives, types_of(split)
    for side in (0, 1):
        np.add.at(counts[side], (types[rules[:, side]], rules[:, 2]), 1)
    return counts


def _exact(splits: Sequence[SplitHome], catalogue: RuleCatalogue) -> Arrays:
    counts: Floats = np.sum([_counts_of(split, catalogue) for split in splits], axis=0)
    return {COUNTS: counts.astype(np.float32)}


def _noised(splits: Sequence[SplitHome], catalogue: RuleCatalogue, epsilon: float, seed: int) -> Arrays:
    """Return the sum of bounded counts with the noise of two helpers, as a run with noise opens it."""
    statistics = TASK.counts
    assert statistics is not None
    rng, shape = np.random.default_rng(seed), (2, len(catalogue.entities), len(catalogue.relations))
    bound = integer_clip(int(np.prod(shape)))
    noise = noise_scale(gdp_of(epsilon, SUM_DELTA), bound, "positive")
    total: Ints = np.zeros(int(np.prod(shape)), np.int64)
    for split in splits:
        counts = statistics.bound({COUNTS: _counts_of(split, catalogue)})[COUNTS].ravel()
        total += quantise(counts, statistics.clip, bound, "positive", rng)
    for _ in range(HELPERS):
        total += discrete_gaussian(noise, total.size, Stream(rng.bytes(32)))
    unit = statistics.clip / bound
    return label({COUNTS: (total * unit).reshape(shape).astype(np.float32)}, noise * HELPERS**0.5 * unit)
