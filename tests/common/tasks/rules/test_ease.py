"""EASE over triples: sums, solution, scores, and what a client refuses."""

import numpy as np
import pytest

from common.arrays import Arrays, Floats, Ints
from common.errors import DataError, WireError
from common.tasks.rules import ease
from common.tasks.rules.vocabulary import RuleCatalogue
from common.wire.sparse_rows import expand

CATALOGUE = RuleCatalogue(entities=("lamp", "door"), relations=("opens → turn on", "closes → turn off"))
HOMES = [np.array(home) for home in ([0, 1, 5], [0, 1], [1, 5, 7], [0, 5], [3], [0, 1, 5, 7])]
POSSIBLE = np.arange(8)
PAIRS = POSSIBLE.reshape(2, 2, 2)


def solution(homes: list[Ints], strength: float = 0.0) -> Arrays:
    """Return what the sums of all homes give."""
    solved = ease.sizes(CATALOGUE, False)
    while ease.STRENGTH not in solved or (not strength and "asked" not in solved):
        template = ease.template(solved)
        if ease.HITS in template:
            solved = {**solved, "asked": np.zeros(1)}
        total = expand(ease.statistics(solved, [(PAIRS, home) for home in homes]), template)
        solved = ease.solve(solved, {name: a.astype(np.float64) for name, a in total.items()}, strength)
    return solved


def precision(homes: list[Ints], size: int, strength: float) -> Floats:
    """Return (Σ wwᵀ + λI)⁻¹ directly."""
    rows = [np.isin(np.arange(size), home) / np.sqrt(len(home)) for home in homes]
    inverse: Floats = np.linalg.inv(np.array(rows).T @ np.array(rows) + strength * np.eye(size))
    return inverse


def test_the_catalogue_is_what_some_home_uses() -> None:
    assert solution(HOMES, 1.0)[ease.TRIPLES].tolist() == [0, 1, 3, 5, 7]


def test_homes_with_both_devices_are_counted() -> None:
    solved = solution(HOMES, 1.0)
    assert [ease.homes_with(solved, *triple) for triple in ((0, 1, 1), (1, 0, 1), (0, 0, 1))] == [
        (1, 6),
        (4, 6),
        (4, 0),
    ]
    assert solved[ease.PAIRS].tolist() == [0, 1, 2, 3]


def test_scores_are_those_of_the_inverse() -> None:
    solved, known = solution(HOMES, 1.0), [0, 1, 3, 5, 7]
    position = {triple: k for k, triple in enumerate(known)}
    homes = [np.array([position[t] for t in home]) for home in HOMES]
    inverse, x = precision(homes, 5, 1.0), np.isin(np.arange(5), homes[0]).astype(float)
    expected = -(x @ inverse) / np.diag(inverse)
    expected[homes[0]] += 1  # by the others alone, as another pair of devices can have the same triple
    found = ease.Precision.of(solved, 1.0, np.arange(5)).scores(homes[0])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    b = np.eye(5) - inverse / np.diag(inverse)
    np.testing.assert_allclose(found, x @ b, atol=1e-5, err_msg="EASE's B, whose diagonal is 0")
    order = np.argsort(ease.logits(solved, np.array(known), HOMES[0]))
    assert (np.diff(expected[order]) > -1e-6).all(), "the order is that of the scores"


def test_a_rule_that_no_home_uses_comes_last() -> None:
    logits = ease.logits(solution(HOMES, 1.0), POSSIBLE, HOMES[0])
    assert (logits[[2, 4, 6]] == ease.OUTSIDE).all()
    assert (logits[[0, 1, 3, 5, 7]] > ease.OUTSIDE).all()


def test_hidden_rules_are_scored_without_the_home() -> None:
    solved, size = solution(HOMES, 1.0), 5
    position = {triple: k for k, triple in enumerate([0, 1, 3, 5, 7])}
    homes = [np.array([position[t] for t in home]) for home in HOMES]
    inverse = precision(homes[1:], size, 1.0)
    found = ease.Precision.of(solved, 1.0, np.arange(size)).hidden_scores(homes[0])
    for k, hidden in enumerate(homes[0]):
        x = np.isin(np.arange(size), np.delete(homes[0], k)).astype(float)
        np.testing.assert_allclose(found[k], -(x @ inverse) / np.diag(inverse), atol=1e-5, err_msg=f"without {hidden}")


def test_clients_choose_the_strength_with_most_hits() -> None:
    solved = {**solution(HOMES, 1.0), ease.CHOICES: np.array(ease.STRENGTHS, np.float32)}
    by_strength = np.zeros((len(ease.STRENGTHS), 1 + 2 * ease.BINS))
    by_strength[:, 0] = [1.0, 4.0, 2.0, 2.0, 0.0]
    hits = by_strength.ravel()
    assert ease.solve(solved, {ease.HITS: hits}, 0.0)[ease.STRENGTH].tolist() == pytest.approx([ease.STRENGTHS[1]])
    assert float(solution(HOMES)[ease.STRENGTH].item()) in [pytest.approx(strength) for strength in ease.STRENGTHS]


def test_a_home_has_length_one_under_noise() -> None:
    start = ease.sizes(CATALOGUE, True)
    total = expand(ease.statistics(start, [(PAIRS, HOMES[0])]), ease.template(start))
    assert np.linalg.norm(total[ease.WEIGHTS]) == pytest.approx(1)
    solved = ease.solve(start, {ease.WEIGHTS: np.arange(8.0)[:, None]}, 0.0)
    assert ease.logits(solved, np.array([7, 2]), HOMES[0]).tolist() == [0, -5]


def test_homes_without_rules_have_nothing_to_solve() -> None:
    with pytest.raises(DataError, match="no home of this run has a rule"):
        ease.solve(ease.sizes(CATALOGUE, False), {ease.USED: np.zeros((8, 1))}, 0.0)


def test_a_vocabulary_with_too_many_triples_is_refused() -> None:
    large = RuleCatalogue(entities=tuple(map(str, range(1000))), relations=tuple(f"opens → {k}" for k in range(60)))
    with pytest.raises(DataError, match="1,000 device types and 60 relations have 60,000,000 triples"):
        ease.sizes(large, False)


def test_a_client_without_rules_adds_nothing() -> None:
    for homes in ([], [np.zeros(0, np.int64)]):
        assert_equal_solutions(solution(HOMES), solution([*HOMES, *homes]))


def assert_equal_solutions(first: Arrays, second: Arrays) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array)


@pytest.mark.parametrize(
    "changed",
    [
        {ease.SIZES: np.array([3, 2, 0, ease.MOST_TRIPLES])},
        {ease.SIZES: np.array([2, 2, 1, ease.MOST_TRIPLES])},
        {ease.SIZES: np.array([2, 2, 0, ease.MOST_TRIPLES + 1])},
        {ease.SIZES: np.array([2, 2, 0])},
        {ease.TRIPLES: np.array([5, 1])},
        {ease.TRIPLES: np.array([1, 8])},
        {ease.TRIPLES: np.array([1.0])},
        {ease.VECTORS: np.zeros((2, 3), np.float32)},
        {ease.PAIRS: np.array([0, 1])},
    ],
)
def test_sums_of_another_vocabulary_are_refused(changed: Arrays) -> None:
    with pytest.raises(WireError):
        ease.check({**solution(HOMES, 1.0), **changed}, CATALOGUE, noised=False)


def test_the_calibration_is_that_of_a_logistic_regression() -> None:
    rng, number = np.random.default_rng(0), 200_000
    odds = rng.uniform(-6, 6, number)
    is_right = rng.random(number) < 1 / (1 + np.exp(-(0.6 * odds + 1.2)))
    right, wrong = (np.histogram(odds[of], ease.BIN_EDGES)[0].astype(float) for of in (is_right, ~is_right))
    np.testing.assert_allclose(ease._calibrate(right, wrong), [0.6, 1.2], atol=0.03)
    none = np.zeros(ease.BINS)
    np.testing.assert_allclose(ease._calibrate(none, none), [1, 0])
    assert ease._calibrate(wrong[::-1], right[::-1])[0] > 0
    assert ease._calibrate(none + 1, none + 1)[0] > 0, "the order of rules stays"


def test_hidden_and_other_rules_weigh_the_same() -> None:
    solved = {**solution(HOMES, 1.0), ease.CHOICES: np.array(ease.STRENGTHS, np.float32)}
    found = ease.statistics(solved, [(PAIRS, home) for home in HOMES])[ease.HITS].reshape(len(ease.STRENGTHS), -1)
    hidden = sum(len(home) for home in HOMES if len(home) > 1)
    np.testing.assert_allclose(found[:, 1 : 1 + ease.BINS].sum(1), hidden)
    np.testing.assert_allclose(found[:, 1 + ease.BINS :].sum(1), hidden, rtol=1e-5)
