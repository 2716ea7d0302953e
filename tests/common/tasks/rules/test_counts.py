"""Offset of summed counts: log(C₁+s) − ½log(C+s) per device."""

import math

import numpy as np

from common.tasks.rules.counts import COUNTS as KEY
from common.tasks.rules.counts import NOISE, OWN, SMOOTHING, label, offset_of, visible_share
from common.tasks.rules.vocabulary import RuleCatalogue

CATALOGUE = RuleCatalogue(
    entities=("Door", "Lamp"), relations=("opens → turn on", "opens → turn off", "closes → turn off")
)
COUNTS = np.array([[[3, 0, 0], [1, 2, 0]], [[0, 0, 0], [4, 2, 0]]], np.float32)


def test_no_counts_no_offset() -> None:
    offset = offset_of({}, CATALOGUE)
    assert (offset.shape, offset.dtype, np.abs(offset).sum()) == ((2, 2, 3), np.float32, 0)


def test_the_formula_by_hand() -> None:
    s, offset = SMOOTHING, offset_of({KEY: COUNTS}, CATALOGUE)
    assert offset.dtype == np.float32
    assert math.isclose(offset[0, 0, 0], math.log(3 + s) - 0.5 * math.log(4 + s), rel_tol=1e-6)
    assert math.isclose(offset[1, 0, 1], math.log(s) - 0.5 * math.log(2 + s), rel_tol=1e-6)
    assert math.isclose(offset[0, 1, 2], 0.5 * math.log(s), rel_tol=1e-6), "never seen is unlikely, not impossible"


def test_both_sides_add_up_to_the_lift_over_chance() -> None:
    offset = offset_of({KEY: COUNTS}, CATALOGUE)
    lift = math.log((1 + SMOOTHING) * (4 + SMOOTHING) / (4 + SMOOTHING))
    assert math.isclose(offset[0, 1, 0] + offset[1, 1, 0], lift, rel_tol=1e-5)


def test_counts_below_zero_are_zero_and_arguments_stay() -> None:
    negative = np.where(COUNTS == 0, -1, COUNTS).astype(np.float32)
    before = negative.copy()
    np.testing.assert_array_equal(offset_of({KEY: negative}, CATALOGUE), offset_of({KEY: COUNTS}, CATALOGUE))
    np.testing.assert_array_equal(negative, before)


def test_noised_counts_are_expected_ones_without_the_own_part() -> None:
    """With little noise the expectations are the counts themselves."""
    own = np.zeros_like(COUNTS)
    own[0, 0, 0] = 1
    noised = label({KEY: COUNTS + own}, 0.1)
    assert noised[NOISE].tolist() == [np.float32(0.1)]
    exact = offset_of({KEY: COUNTS}, CATALOGUE)
    np.testing.assert_allclose(offset_of({**noised, OWN: own}, CATALOGUE), exact, rtol=1e-5)
    assert offset_of(noised, CATALOGUE)[0, 0, 0] > exact[0, 0, 0] + 0.1
    assert label({KEY: COUNTS}, 0.0) == {KEY: COUNTS}


def test_noise_leaves_little_of_few_counts_and_most_of_many() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.2, (2, 10, 100)) * rng.poisson(1.0, (2, 10, 100))
    noise = rng.normal(0, 4, counts.shape)
    catalogue = RuleCatalogue(
        entities=tuple(map(str, range(10))), relations=tuple(f"{n} → turn on" for n in range(100))
    )
    sums = [label({KEY: (times * counts + noise).astype(np.float32)}, 4.0) for times in (0, 1, 30)]
    shares = [visible_share(one, catalogue) for one in sums]
    assert shares[0] < 0.1
    assert shares[1] < 0.5
    assert shares[2] > 0.9
    assert visible_share({KEY: counts.astype(np.float32)}, catalogue) == 1


def test_noised_counts_of_types_that_cannot_have_them_are_zero() -> None:
    """A lamp does not open; its counts are noise, which neither ranks rules nor enters the prior."""
    able = CATALOGUE.model_copy(
        update={"notices": {"Door": ("opens", "closes")}, "does": {"Lamp": ("turn on", "turn off")}}
    )
    noised = np.array([[[30, 1, 0], [9, 8, 9]], [[7, 9, 8], [30, 1, 0]]], np.float32)
    found = offset_of(label({KEY: noised}, 3.0), able)
    other = offset_of(label({KEY: np.where(np.stack(able.possible()), noised, 0).astype(np.float32)}, 3.0), able)
    np.testing.assert_array_equal(found, other)
    assert found[0, 0].argmax() == 0
    own = np.where(np.stack(able.possible()), 0, 1).astype(np.float32)
    np.testing.assert_array_equal(offset_of({**label({KEY: noised}, 3.0), OWN: own}, able), found)
    assert (found[0, 1] < found[0, 0]).all()


def test_a_vocabulary_without_abilities_has_no_counts() -> None:
    unable = CATALOGUE.model_copy(update={"notices": {"Door": ("rings",)}, "does": {"Lamp": ("rings",)}})
    noised = label({KEY: np.full_like(COUNTS, 9)}, 3.0)
    np.testing.assert_allclose(offset_of(noised, unable), 0.5 * math.log(SMOOTHING))
    assert visible_share(noised, unable) == 1
