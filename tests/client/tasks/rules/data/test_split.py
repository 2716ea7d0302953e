"""Splits: sizes, independence of place and options, and the leak switch."""

from pathlib import Path

import numpy as np
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Device, Home, as_edges, split_home, split_homes
from client.tasks.rules.data.reader import read_homes
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.vocabulary import Edges, demo_catalogue
from studies.rules.isolation import isolated

RELATIONS = len(demo_catalogue().relations)
HOMES = demo_homes(0, 300, seed=1)
PAPER = RulesOptions(negatives=1)


def triples(*edges: Edges) -> set[tuple[int, ...]]:
    return {tuple(edge) for part in edges for edge in part.tolist()}


@pytest.mark.parametrize(("validation_share", "negatives"), [(0.0, 1), (0.25, 5)])
def test_the_parts_are_floors_of_their_shares_and_partition_the_rules(validation_share: float, negatives: int) -> None:
    options = RulesOptions(validation_share=validation_share, negatives=negatives)
    for split in split_homes(HOMES, RELATIONS, options, seed=0):
        total, test = len(split.home.rules), len(split.home.rules) // 5
        validation = int(validation_share * (total - test))
        sizes = [len(part.positives) for part in (split.train, split.validation, split.test)]
        assert sizes == [total - test - validation, validation, test]
        positives = [part.positives for part in (split.train, split.validation, split.test)]
        assert triples(*positives) == triples(split.home.rules)


def test_negatives_balance_are_no_rules_and_held_out_ones_are_not_trained_on() -> None:
    for split in split_homes(HOMES, RELATIONS, RulesOptions(negatives=4, validation_share=0.2), seed=0):
        parts = (split.train, split.validation, split.test)
        negatives = triples(*(part.negatives for part in parts))
        assert not negatives & triples(split.home.rules)
        assert not triples(split.train.negatives) & triples(split.validation.negatives, split.test.negatives)
        for part in parts[1:]:
            assert len(part.negatives) == len(part.positives)
        assert len(split.train.positives) <= len(split.train.negatives) <= 4 * len(split.train.positives)


def test_test_examples_do_not_depend_on_pools_or_validation() -> None:
    for home in HOMES:
        plain = split_home(home, RELATIONS, PAPER, seed=0)
        rich = split_home(home, RELATIONS, RulesOptions(negatives=5, validation_share=0.3), seed=0)
        np.testing.assert_array_equal(plain.test.positives, rich.test.positives)
        np.testing.assert_array_equal(plain.test.negatives, rich.test.negatives)


def test_a_home_is_split_the_same_wherever_it_lives_and_otherwise_under_another_seed() -> None:
    large = [home for home in HOMES if len(home.rules) >= 10]
    alone = split_homes(large[:1], RELATIONS, PAPER, seed=0)[0]
    among = next(split for split in split_homes(HOMES[::-1], RELATIONS, PAPER, seed=0) if split.home is large[0])
    np.testing.assert_array_equal(alone.train.positives, among.train.positives)
    np.testing.assert_array_equal(alone.train.negatives, among.train.negatives)
    other = [split_home(home, RELATIONS, PAPER, seed=1).test.positives.tolist() for home in large]
    assert other != [split_home(home, RELATIONS, PAPER, seed=0).test.positives.tolist() for home in large]


def test_small_users_train_only_or_are_dropped() -> None:
    with_test = sum(len(home.rules) >= 5 for home in HOMES)
    assert len(split_homes(HOMES, RELATIONS, PAPER, seed=0)) == len(HOMES)
    dropping = PAPER.model_copy(update={"small_users": "drop"})
    assert len(split_homes(HOMES, RELATIONS, dropping, seed=0)) == with_test


def test_complete_graphs_are_skipped_and_homes_without_rules_are_not() -> None:
    devices = (Device("lamp", 0),)
    complete = Home("ann", devices, as_edges((0, 0, r) for r in range(3)))
    empty = Home("bob", devices, as_edges([]))
    assert [split.home for split in split_homes([complete, empty], 3, PAPER, seed=0)] == [empty]


def test_of_the_real_test_rules_one_in_six_has_an_isolated_end(recrules: Path) -> None:
    """explore-rules.md §5: 112 of 125 clients have a test rule, 691 in all; 16 % have an end without training rule."""
    dataset = read_homes(recrules)
    splits = split_homes(
        [home for home in dataset.units if len(home.devices) > 2], len(dataset.vocabulary.relations), PAPER, seed=0
    )
    assert len(splits) == 125
    assert sum(bool(len(split.test.positives)) for split in splits) == 112
    leaking = np.concatenate([isolated(split, split.test.positives) for split in splits])
    assert len(leaking) == 691
    assert leaking.mean() == pytest.approx(0.16, abs=0.03)
