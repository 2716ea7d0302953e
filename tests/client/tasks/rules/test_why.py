"""Reasons of rules: own rules first, without a number."""

import re

import numpy as np

from client.tasks.lists import LEARNT
from client.tasks.rules.data.homes import Device, Home, as_edges
from client.tasks.rules.inference import list_rules, reason, reason_of_none
from client.tasks.rules.lists import Abilities, ListOptions
from common.tasks.rules import ease
from common.tasks.rules.vocabulary import RuleCatalogue

CATALOGUE = RuleCatalogue(
    entities=("Door", "Lamp", "Siren"), relations=("closes → turn off", "opens → sound", "opens → turn on")
)
ABILITIES = Abilities.of(CATALOGUE)
DEVICES = (Device("back door", 0), Device("front door", 0), Device("hall lamp", 1), Device("attic siren", 2))
HOME = Home("home", DEVICES, as_edges([(0, 2, 2)]))
NEW = Home("new", DEVICES, as_edges([]))


def why(home: Home, rule: tuple[int, int, int]) -> str:
    return reason(home, rule, ABILITIES, {})


def test_the_nearest_own_rule_is_named() -> None:
    two = Home("two", DEVICES, as_edges([(0, 2, 0), (0, 2, 2)]))
    assert why(two, (1, 2, 2)) == "like your rule 'back door opens → turn on hall lamp'"
    assert why(two, (1, 2, 0)) == "like your rule 'back door closes → turn off hall lamp'"
    assert why(HOME, (0, 2, 0)) == "undoes your rule 'back door opens → turn on hall lamp'"
    assert why(HOME, (1, 2, 0)) == LEARNT, "a rule of the other polarity is no reason"
    assert why(HOME, (0, 3, 1)) == "same event as in your rule 'back door opens → turn on hall lamp'"
    assert why(HOME, (3, 2, 2)) == "same action as in your rule 'back door opens → turn on hall lamp'"


def test_a_rule_has_the_circumstances_of_its_kind_in_the_home() -> None:
    scores = np.full((4, 4, 3), -9.0)
    scores[1, 2] = (1.0, -9.0, 2.0)
    for when, words in ((("by day",), "by day"), ((), "")):
        home = Home("home", DEVICES, HOME.rules, when)
        [answer], _ = list_rules(scores, home, CATALOGUE, ListOptions(5, least=-5.0))
        assert answer.circumstances == words
        assert f"turn on hall lamp {words};".replace(" ;", ";") in answer.rule
        assert f"turn on hall lamp, {words}'".replace(", '", "'") in answer.why


def test_no_reason_has_a_number() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 4, 3))
    for home in (HOME, NEW):
        answers, _ = list_rules(scores, home, CATALOGUE, ListOptions(100))
        assert len(answers) > 2
        assert not any(re.search(r"\d", answer.why) for answer in answers)


def test_the_number_of_homes_is_a_reason_where_it_is_large_enough() -> None:
    triple = (0 * 3 + 1) * 3 + 2
    known = {ease.SIZES: np.array([3, 3, 0, 9]), ease.TRIPLES: np.array([triple]), ease.PAIRS: np.array([1])}
    words = "about 130 of 400 homes with such devices have it"
    for homes, owners, text in ((127, 404, words), (127, 90, LEARNT), (9, 404, LEARNT)):
        counts = {ease.HOMES: np.array([float(homes)]), ease.OWNERS: np.array([float(owners)])}
        assert reason(NEW, (0, 2, 2), ABILITIES, {**known, **counts}) == text


def test_a_list_without_likely_rules_says_so() -> None:
    for homes, why in (
        (4, "4 homes are few for 3 kinds of devices"),
        (1996, "no rule for these devices is common among 1,996 homes"),
    ):
        known = {ease.VALUES: np.array([float(homes)])}
        answers, empty = list_rules(np.full((4, 4, 3), -9.0), NEW, CATALOGUE, ListOptions(5, least=0.0), known)
        assert (answers, empty) == ([], f"nothing worth adding: {why}")


def test_two_rules_that_undo_each_other_are_one_suggestion() -> None:
    scores = np.full((4, 4, 3), -9.0)
    scores[1, 2] = (1.0, -9.0, 2.0)
    [answer], _ = list_rules(scores, NEW, CATALOGUE, ListOptions(5, least=-5.0))
    assert answer.rule == "when front door opens, turn on hall lamp; when it closes, turn off hall lamp"
    assert (answer.trigger_state, answer.action) == ("opens", "turn on")
    assert (answer.undoing_state, answer.undoing_action, answer.likely) == ("closes", "turn off", "possible")


def test_an_empty_list_is_explained() -> None:
    able = CATALOGUE.model_copy(update={"notices": {"Door": ("opens",)}, "does": {}})
    table = Abilities.of(able.model_copy(update={"does": {"Door": ("turn off",)}}))
    three = Home("three", (DEVICES[0], *DEVICES[2:]), as_edges([]))
    expected = "no possible rule is left: 3 devices, 2 of types that nobody has rules for"
    assert reason_of_none(three, table, {}) == expected
    one = Home("one", DEVICES[:1], as_edges([]))
    assert list_rules(np.zeros((1, 1, 3)), one, CATALOGUE, ListOptions()) == (
        [],
        "no possible rule is left: 1 device, and a rule needs two",
    )
