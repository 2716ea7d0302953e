"""Reasons of rules: own rules first, then released counts, without a number otherwise."""

import re

import numpy as np

from client.tasks.rules.data.homes import Device, Home, as_edges
from client.tasks.rules.inference import list_rules, reason, reason_of_none
from client.tasks.rules.lists import Abilities, ListOptions
from common.tasks.rules.vocabulary import RuleCatalogue

CATALOGUE = RuleCatalogue(
    entities=("Door", "Lamp", "Siren"), relations=("closes → turn off", "opens → sound", "opens → turn on")
)
ABILITIES = Abilities.of(CATALOGUE)
DEVICES = (Device("back door", 0), Device("front door", 0), Device("hall lamp", 1), Device("attic siren", 2))
HOME = Home("home", DEVICES, as_edges([(0, 2, 2)]))
NEW = Home("new", DEVICES, as_edges([]))


def why(home: Home, rule: tuple[int, int, int], counts: np.ndarray | None = None) -> str:
    return reason(home, rule, CATALOGUE, ABILITIES, counts)


def test_the_nearest_own_rule_is_named() -> None:
    two = Home("two", DEVICES, as_edges([(0, 2, 0), (0, 2, 2)]))
    assert why(two, (1, 2, 2)) == "like your rule 'back door opens → turn on hall lamp'"
    assert why(two, (1, 2, 0)) == "like your rule 'back door closes → turn off hall lamp'"
    assert why(HOME, (0, 3, 1)) == "same event as in your rule 'back door opens → turn on hall lamp'"
    assert why(HOME, (3, 2, 2)) == "same action as in your rule 'back door opens → turn on hall lamp'"


def test_a_released_count_of_the_rarer_side_is_stated_in_tens() -> None:
    counts = np.zeros((2, 3, 3), np.float32)
    counts[0, 0, 1], counts[1, 2, 1] = 214, 34
    assert why(NEW, (0, 3, 1), counts) == "about 30 rules of the federation 'opens → sound' that act on Siren"
    counts[0, 0, 1] = 12
    assert why(NEW, (0, 3, 1), counts) == "about 10 rules of the federation 'opens → sound' with the trigger Door"
    counts[0, 0, 1] = 9
    assert why(NEW, (0, 3, 1), counts) == "learnt by the federation"


def test_without_released_counts_no_reason_has_a_number() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 4, 3))
    for home in (HOME, NEW):
        answers, _ = list_rules(scores, home, CATALOGUE, ListOptions(100), None)
        assert len(answers) > 5
        assert not any(re.search(r"\d", answer.why) for answer in answers)


def test_an_empty_list_is_explained() -> None:
    able = CATALOGUE.model_copy(update={"notices": {"Door": ("opens",)}, "does": {}})
    table = Abilities.of(able.model_copy(update={"does": {"Door": ("turn off",)}}))
    three = Home("three", (DEVICES[0], *DEVICES[2:]), as_edges([]))
    expected = "no possible rule is left: 3 devices, 2 of types that nobody has rules for"
    assert reason_of_none(three, able, table) == expected
    one = Home("one", DEVICES[:1], as_edges([]))
    assert list_rules(np.zeros((1, 1, 3)), one, CATALOGUE, ListOptions(), None) == (
        [],
        "no possible rule is left: 1 device, and a rule needs two",
    )
