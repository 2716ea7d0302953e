"""Offset of summed counts: log(C₁+s) − ½log(C+s) per device."""

import math

import numpy as np

from common.tasks.rules.counts import SMOOTHING, offset_of
from common.tasks.rules.vocabulary import RuleCatalogue

CATALOGUE = RuleCatalogue(
    entities=("Door", "Lamp"), relations=("opens → turn on", "opens → turn off", "closes → turn off")
)
COUNTS = np.array([[[3, 0, 0], [1, 2, 0]], [[0, 0, 0], [4, 2, 0]]], np.float32)


def test_no_counts_no_offset() -> None:
    offset = offset_of(None, CATALOGUE)
    assert (offset.shape, offset.dtype, np.abs(offset).sum()) == ((2, 2, 3), np.float32, 0)


def test_the_formula_by_hand() -> None:
    s, offset = SMOOTHING, offset_of(COUNTS, CATALOGUE)
    assert offset.dtype == np.float32
    assert math.isclose(offset[0, 0, 0], math.log(3 + s) - 0.5 * math.log(4 + s), rel_tol=1e-6)
    assert math.isclose(offset[1, 0, 1], math.log(s) - 0.5 * math.log(2 + s), rel_tol=1e-6)
    assert math.isclose(offset[0, 1, 2], 0.5 * math.log(s), rel_tol=1e-6), "never seen is unlikely, not impossible"


def test_both_sides_add_up_to_the_lift_over_chance() -> None:
    offset = offset_of(COUNTS, CATALOGUE)
    lift = math.log((1 + SMOOTHING) * (4 + SMOOTHING) / (4 + SMOOTHING))
    assert math.isclose(offset[0, 1, 0] + offset[1, 1, 0], lift, rel_tol=1e-5)


def test_counts_below_zero_are_zero_and_arguments_stay() -> None:
    negative = np.where(COUNTS == 0, -1, COUNTS).astype(np.float32)
    before = negative.copy()
    np.testing.assert_array_equal(offset_of(negative, CATALOGUE), offset_of(COUNTS, CATALOGUE))
    np.testing.assert_array_equal(negative, before)
