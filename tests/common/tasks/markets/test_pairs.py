"""Counts of pairs: sums over markets, subtraction, checks, selection of a market's items."""

import numpy as np
import pytest

from common.arrays import Array, Arrays
from common.errors import WireError
from common.tasks.markets.pairs import (
    DEGREES,
    KEYS,
    VALUES,
    OtherMarketCounts,
    add_pairs,
    check_pairs,
    counts_of,
    includes,
    no_counts,
)

ITEMS = 5


def counts(pairs: dict[tuple[int, int], float]) -> Arrays:
    ordered = sorted(pairs)
    degrees = np.bincount(np.ravel(ordered), minlength=ITEMS)
    return counts_of(np.array(ordered, np.int64).reshape(-1, 2), np.array([pairs[p] for p in ordered]), degrees, ITEMS)


ONE, OTHER = counts({(0, 1): 2, (1, 4): 3}), counts({(0, 1): 1, (2, 3): 5})


def test_sums_add_pair_by_pair() -> None:
    total = add_pairs([ONE, OTHER])
    assert dict(zip(total[KEYS].tolist(), total[VALUES].tolist(), strict=True)) == {1: 3, 9: 3, 13: 5}
    np.testing.assert_array_equal(total[DEGREES], [2, 3, 1, 1, 1])
    check_pairs(total, ITEMS)


def test_summed_counts_can_be_subtracted() -> None:
    left = add_pairs([add_pairs([ONE, OTHER]), ONE], [1, -1])
    for name in OTHER:
        np.testing.assert_array_equal(left[name], OTHER[name])


def test_a_sum_includes_its_parts_and_no_others() -> None:
    total = add_pairs([ONE, OTHER])
    assert includes(total, ONE)
    assert includes(total, OTHER)
    assert includes(total, no_counts(ITEMS))
    assert not includes(OTHER, ONE)
    assert not includes(total, counts({(0, 1): 4}))
    assert not includes(total, counts({(3, 4): 1}))


def test_other_market_counts_are_those_of_the_market_s_items() -> None:
    other_counts = OtherMarketCounts.of(add_pairs([ONE, OTHER]), np.array([0, 1, 3]))
    np.testing.assert_array_equal(other_counts.pairs.toarray(), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(other_counts.degrees, [2, 3, 1])


def broken(**changed: Array) -> Arrays:
    names = {"keys": KEYS, "values": VALUES, "degrees": DEGREES}
    return {**ONE, **{names[name]: a for name, a in changed.items()}}


@pytest.mark.parametrize(
    "counts",
    [
        {KEYS: ONE[KEYS], VALUES: ONE[VALUES]},
        broken(keys=ONE[KEYS][:1]),
        broken(keys=ONE[KEYS][::-1]),
        broken(keys=np.array([1, 25])),
        broken(keys=np.array([-1, 1])),
        broken(keys=np.array([1, 5])),
        broken(keys=np.array([6, 9])),
        broken(keys=ONE[KEYS].astype(np.int32)),
        broken(values=-ONE[VALUES]),
        broken(values=np.array([1, np.nan], np.float32)),
        broken(values=ONE[VALUES].astype(np.float64)),
        broken(degrees=ONE[DEGREES][:-1]),
        broken(degrees=-ONE[DEGREES]),
    ],
)
def test_other_arrays_are_refused(counts: Arrays) -> None:
    with pytest.raises(WireError, match="counts: "):
        check_pairs(counts, ITEMS)
