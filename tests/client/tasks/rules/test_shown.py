"""Shown rules: possible for the devices, free of contradictions, in the order of the scores."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import COLUMNS, Device, Home, as_edges
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.lists import Abilities, ListOptions, shared_abilities, shown
from common.tasks.rules.vocabulary import ACTIONS, STATES, Edges, RuleCatalogue, demo_catalogue, relation_parts

TEN_ROWS = (
    "ann,Contact sensor,door,opens,turn on,Light,hall",
    "ann,Contact sensor,door,closes,turn off,Light,hall",
    "bob,Motion sensor,stairs,detects motion,turn on,Light,stairs",
    "bob,Motion sensor,stairs,sees no motion,turn off,Light,stairs",
    "bob,Light,stairs,turns on,start recording on,Camera,porch",
    "cat,Camera,porch,detects a person,lock,Door lock,front",
    "cat,Door lock,front,unlocks,stop recording on,Camera,porch",
    "dan,Contact sensor,window,opens,turn down,Thermostat,living room",
    "eve,Motion sensor,hall,detects motion,dim,Light,hall",
    "eve,Leak sensor,cellar,,,,",
)


def scores_of(home: Home, relations: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(home.devices),) * 2 + (relations,)).astype(np.float32)


def listed(home: Home, catalogue: RuleCatalogue, top: int = 100, diverse: float = 1.0) -> Edges:
    scores = scores_of(home, len(catalogue.relations))
    return shown(scores, home, home.rules, Abilities.of(catalogue), ListOptions(top, diverse))


def check_free_of_contradictions(home: Home, rules: Edges, catalogue: RuleCatalogue) -> None:
    pairs = {frozenset(pair) for pair in catalogue.opposites}
    parts = [relation_parts(name) for name in catalogue.relations]
    events = [(i, j, parts[r][0]) for i, j, r in rules.tolist()]
    assert len(set(events[: len(set(events))])) == len(set(events))  # further actions follow the best of each event
    for event in set(events):
        actions = [parts[r][1] for other, (_, _, r) in zip(events, rules.tolist(), strict=True) if other == event]
        assert not any(frozenset(pair) in pairs for pair in combinations(actions, 2))
    own = {(i, j, *parts[r]) for i, j, r in home.rules.tolist()}
    for (i, j, state), (_, _, r) in zip(events, rules.tolist(), strict=True):
        assert (i, j, *parts[r]) not in own
        for a, b, other_state, action in own:
            assert (a, b, other_state) != (i, j, state) or frozenset((action, parts[r][1])) not in pairs


def test_nothing_shown_to_200_homes_is_impossible_or_a_contradiction() -> None:
    catalogue, count = demo_catalogue(), 0
    for home in demo_homes(0, 200, 0):
        rules = listed(home, catalogue)
        check_free_of_contradictions(home, rules, catalogue)
        for i, j, r in rules.tolist():
            state, action = relation_parts(catalogue.relations[r])
            assert i != j
            assert state in STATES[catalogue.entities[home.devices[i].entity]]
            assert action in ACTIONS[catalogue.entities[home.devices[j].entity]]
        count += len(rules)
    assert count > 1_000


def test_a_newcomer_with_ten_rows_gets_only_what_these_rows_show(tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("\n".join([",".join(COLUMNS), *TEN_ROWS]), "utf-8")
    dataset = read_homes(tmp_path / "rules.csv")
    catalogue, seen = dataset.vocabulary, [row.split(",") for row in TEN_ROWS]
    triggers, actions = {(row[1], row[3]) for row in seen}, {(row[5], row[4]) for row in seen}
    for home in dataset.units:
        rules = listed(home, catalogue)
        check_free_of_contradictions(home, rules, catalogue)
        for i, j, r in rules.tolist():
            state, action = relation_parts(catalogue.relations[r])
            assert (catalogue.entities[home.devices[i].entity], state) in triggers
            assert (catalogue.entities[home.devices[j].entity], action) in actions
    assert any(len(listed(home, catalogue)) for home in dataset.units)


def test_a_home_s_own_rule_widens_the_abilities_of_its_types_there_alone() -> None:
    catalogue = RuleCatalogue(
        entities=("Door", "Lamp"),
        relations=("opens → turn on", "rings → flash"),
        notices={"Door": ("opens",)},
        does={"Lamp": ("turn on",)},
    )
    devices = (Device("a", 0), Device("b", 0), Device("lamp", 1), Device("light", 1))
    plain, ringing = Home("p", devices, as_edges([])), Home("r", devices, as_edges([(0, 2, 1)]))
    assert set(listed(plain, catalogue)[:, 2].tolist()) == {0}
    assert {(0, 3, 1), (1, 2, 1), (1, 3, 1)} < set(map(tuple, listed(ringing, catalogue).tolist()))


@pytest.mark.parametrize(
    ("own", "other", "dropped"),
    [
        ("turn on", "turn off", True),
        ("Turn_Off the", "turn on THE", True),
        ("start recording on", "stop recording on", True),
        ("unlock", "lock", True),
        ("lock", "lock the cat flap", False),
        ("turn on", "dim", False),
        ("toggle", "turn on", False),
        ("heat", "cool", False),
    ],
)
def test_the_opposite_of_an_own_rule_is_dropped(own: str, other: str, dropped: bool) -> None:
    catalogue = RuleCatalogue(entities=("Door", "Lamp"), relations=(f"opens → {own}", f"opens → {other}"))
    home = Home("h", (Device("d", 0), Device("l", 1)), as_edges([(0, 1, 0)]))
    assert ((0, 1, 1) not in set(map(tuple, listed(home, catalogue).tolist()))) == dropped
    assert (1, 0) in {(i, j) for i, j, _ in listed(home, catalogue).tolist()}  # another event stays free


def test_a_catalogue_may_name_further_opposites() -> None:
    catalogue = RuleCatalogue(
        entities=("Door", "Heater"), relations=("opens → cool", "opens → heat"), opposites=(("heat", "cool"),)
    )
    home = Home("h", (Device("d", 0), Device("h", 1)), as_edges([(0, 1, 1)]))
    assert (0, 1, 0) not in set(map(tuple, listed(home, catalogue).tolist()))


def test_a_short_list_is_filled_with_actions_that_contradict_none_above() -> None:
    catalogue = RuleCatalogue(
        entities=("Door", "Lamp"), relations=("opens → dim", "opens → turn off", "opens → turn on")
    )
    home = Home("h", (Device("d", 0), Device("l", 1)), as_edges([]))
    scores = np.zeros((2, 2, 3), np.float32)
    scores[0, 1], scores[1, 0] = (1, 2, 3), (4, 5, 6)
    abilities = Abilities.of(catalogue)
    lists = {top: shown(scores, home, home.rules, abilities, ListOptions(top)).tolist() for top in (2, 3, 9)}
    assert lists[9] == [[1, 0, 2], [0, 1, 2], [1, 0, 0], [0, 1, 0]]
    assert lists[2] == lists[9][:2]
    assert lists[3] == lists[9][:3]


def test_diverse_lists_name_more_devices_and_keep_the_best_rule_first() -> None:
    catalogue = demo_catalogue()
    homes = [home for home in demo_homes(0, 60, 0) if len(home.devices) > 5]
    plain, diverse = ([listed(home, catalogue, 10, weight) for home in homes] for weight in (1.0, 0.5))
    assert all((a[0] == b[0]).all() for a, b in zip(plain, diverse, strict=True))
    assert sum(len(set(b[:, 1])) for b in diverse) > sum(len(set(a[:, 1])) for a in plain)
    for home, rules in zip(homes, diverse, strict=True):
        check_free_of_contradictions(home, rules, catalogue)


def test_a_diverged_model_and_a_home_without_devices_give_no_rule() -> None:
    catalogue = demo_catalogue()
    home = demo_homes(3, 4, 0)[0]
    nan = np.full_like(scores_of(home, len(catalogue.relations)), np.nan)
    assert shown(nan, home, home.rules, Abilities.of(catalogue), ListOptions()).shape == (0, 3)
    assert listed(Home("empty", (), as_edges([])), catalogue).shape == (0, 3)


def test_only_equal_vocabularies_share_arrays() -> None:
    catalogue = demo_catalogue()
    other = catalogue.model_copy(update={"does": {catalogue.entities[0]: ("turn on",)}})
    assert hash(other) == hash(catalogue)
    assert shared_abilities(catalogue) is shared_abilities(catalogue.model_copy())
    assert not np.array_equal(shared_abilities(other).actions, shared_abilities(catalogue).actions)
