"""Sequential rules: counts by hand, sums, look-up, refusal of malformed counts."""

import numpy as np
import pytest

from common.arrays import Arrays
from common.errors import WireError
from common.tasks.sessions.counts import KEYS, VALUES, SharedRules, add_rules, check_rules, count_rules

V = 4
A, B, C, D = range(V)


def clicks(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def as_dict(counts: Arrays) -> dict[tuple[int, int], float]:
    return {(int(k) // V, int(k) % V): round(float(v), 5) for k, v in zip(counts[KEYS], counts[VALUES], strict=True)}


def test_each_pair_counts_one_over_its_distance() -> None:
    # a b a c: a->b 1, a->a 1/2, b->a 1, a->c 1/3 + 1, b->c 1/2
    expected = {(A, B): 1.0, (A, A): 0.5, (B, A): 1.0, (A, C): 1.33333, (B, C): 0.5}
    assert as_dict(count_rules([clicks(A, B, A, C)], V)) == expected


def test_no_sessions_no_rules() -> None:
    counts = count_rules([], V)
    check_rules(counts, V)
    assert as_dict(counts) == {}


def test_the_sum_over_clients_is_that_of_all_their_sessions() -> None:
    first, second = [clicks(A, B, C)], [clicks(B, C, D), clicks(A, C)]
    together = count_rules(first + second, V)
    summed = add_rules([count_rules(first, V), count_rules(second, V)])
    assert as_dict(summed) == as_dict(together)
    assert as_dict(add_rules([summed, count_rules(second, V)], [1.0, -1.0])) == as_dict(count_rules(first, V))


def test_scores_fade_with_age() -> None:
    counts = count_rules([clicks(A, C), clicks(B, C), clicks(B, D)], V)
    rules = SharedRules(counts[KEYS], counts[VALUES], V)
    # last click b: c 1 + .8 (from a, one click ago), d 1
    items, scores = rules.scores(clicks(A, B))
    assert items.tolist() == [C, D]
    assert scores.tolist() == pytest.approx([1.8, 1.0])
    assert not len(rules.scores(clicks(D))[0])


GOOD = count_rules([clicks(A, B, C)], V)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {KEYS: GOOD[KEYS]},
        {KEYS: GOOD[KEYS], VALUES: GOOD[VALUES][:1]},
        {KEYS: GOOD[KEYS][::-1], VALUES: GOOD[VALUES]},
        {KEYS: GOOD[KEYS] + V * V, VALUES: GOOD[VALUES]},
        {KEYS: GOOD[KEYS] - 2, VALUES: GOOD[VALUES]},
        {KEYS: GOOD[KEYS], VALUES: -GOOD[VALUES]},
        {KEYS: GOOD[KEYS], VALUES: GOOD[VALUES] * np.float32("nan")},
        {KEYS: GOOD[KEYS], VALUES: GOOD[VALUES].astype(np.float64)},
    ],
)
def test_malformed_counts_are_refused(bad: Arrays) -> None:
    with pytest.raises(WireError, match="counts"):
        check_rules(bad, V)
