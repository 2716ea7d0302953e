"""Shown rules: possible for the devices, free of contradictions, in the order of the scores."""

from pathlib import Path

import numpy as np
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import COLUMNS, Device, Home, as_edges
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.lists import LEAST, Abilities, ListOptions, gained, least_of, shared_abilities, shown
from common.tasks.rules import ease
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
    assert len(set(events)) == len(events)  # the best action of each event
    own = {(i, j, *parts[r]) for i, j, r in home.rules.tolist()}
    for (i, j, state), (_, _, r) in zip(events, rules.tolist(), strict=True):
        assert (i, j, *parts[r]) not in own
        for a, b, other_state, action in own:
            assert (a, b, other_state) != (i, j, state) or frozenset((action, parts[r][1])) not in pairs


def suggestions(rules: Edges, abilities: Abilities) -> list[list[tuple[int, int, int]]]:
    """Return rules with those that undo them."""
    found: list[list[tuple[int, int, int]]] = []
    for i, j, r in rules.tolist():
        if (
            found
            and len(found[-1]) == 1
            and found[-1][0][:2] == (i, j)
            and r in abilities.counterparts(found[-1][0][2])
        ):
            found[-1].append((i, j, r))
        else:
            found.append([(i, j, r)])
    return found


def test_a_list_has_two_suggestions_of_a_trigger_or_on_a_device_best_first() -> None:
    catalogue, pairs, further, lengths = demo_catalogue(), 0, 0, []
    abilities = shared_abilities(catalogue)
    for home in demo_homes(0, 40, 0):
        scores = scores_of(home, len(catalogue.relations))
        scores[:, 0] += 100.0  # all rules on one device are the best
        rules = shown(scores, home, home.rules, abilities, ListOptions(10))
        assert np.array_equal(shown(scores, home, home.rules, abilities, ListOptions(5)), rules[:5])
        longer = shown(scores, home, home.rules, abilities, ListOptions(40))
        ranks = [gained(scores, home, home.rules)[pair[0]] for pair in suggestions(longer, abilities)]
        assert ranks == sorted(ranks, reverse=True)
        further += len(longer) > len(rules)
        found = suggestions(rules, abilities)
        values = [gained(scores, home, home.rules)[pair[0]] for pair in found]
        assert values == sorted(values, reverse=True)
        for side in (0, 1):
            devices = [pair[0][side] for pair in found]
            assert max(map(devices.count, devices), default=0) <= 2
        assert len({pair[0][1] for pair in found}) > 1 or len(found) <= 1
        pairs += sum(len(pair) == 2 for pair in found)
        lengths.append(len(found))
    assert pairs > 20
    assert further > 20
    assert np.mean(lengths) > 4


@pytest.mark.parametrize(
    ("states", "best", "listed"),
    [
        (("turns on", "turns off"), "turns on → turn off", {"turns on → turn off"}),
        (("turns on", "turns off"), "turns on → turn on", {"turns on → turn on", "turns off → turn off"}),
        (("opens", "closes"), "opens → turn off", {"opens → turn off", "closes → turn on"}),
        (("opens", "closes"), "opens → turn on", {"opens → turn on", "closes → turn off"}),
    ],
)
def test_no_rule_stands_beside_its_opposite_but_the_usual_pair(
    states: tuple[str, str], best: str, listed: set[str]
) -> None:
    relations = tuple(sorted(f"{state} → turn {way}" for state in states for way in ("on", "off")))
    catalogue = RuleCatalogue(entities=("Box", "Lamp"), relations=relations)
    home = Home("h", (Device("d", 0), Device("l", 1)), as_edges([]))
    scores = np.zeros((2, 2, 4), np.float32)
    scores[1, 0] = -9
    scores[0, 1, relations.index(best)] = 2
    rules = shown(scores, home, home.rules, Abilities.of(catalogue), ListOptions(9, least=-5))
    assert {relations[r] for _, _, r in rules.tolist()} == listed


def test_a_rule_of_one_room_comes_first_and_one_between_rooms_needs_an_own_one() -> None:
    catalogue = RuleCatalogue(entities=("Lamp", "Motion"), relations=("detects motion → turn on",))
    names = (("a lamp", 0, "Hall"), ("b lamp", 0, "Kitchen"), ("m", 1, "Hall"), ("n", 1, "Kitchen"), ("o", 1, "Attic"))
    devices = tuple(Device(*name) for name in names)
    scores = np.full((5, 5, 1), -9.0, np.float32)
    scores[2:, :2] = [[[0.0], [0.5]], [[0.5], [0.0]], [[1.0], [1.0]]]
    options = ListOptions(9, least=-5)
    new = Home("h", devices, as_edges([]))
    assert shown(scores, new, new.rules, Abilities.of(catalogue), options).tolist() == [[2, 0, 0], [3, 1, 0]]
    used = Home("h", devices, as_edges([(2, 1, 0)]))
    assert [4, 0, 0] in shown(scores, used, used.rules, Abilities.of(catalogue), options).tolist()


def test_an_unlikely_rule_is_not_shown() -> None:
    catalogue = RuleCatalogue(entities=("Door", "Lamp"), relations=("opens → turn on",))
    home = Home("h", (Device("d", 0), Device("l", 1)), as_edges([]))
    for score, rules in ((LEAST + 0.1, 1), (LEAST - 0.1, 0)):
        scores = np.full((2, 2, 1), -9.0) + np.array([[[0], [9 + score]], [[0], [0]]])
        options = ListOptions(9, least=least_of(()))
        assert (
            len(
                shown(scores - gained(scores * 0, home, home.rules), home, home.rules, Abilities.of(catalogue), options)
            )
            == rules
        )
    assert least_of((ease.POPULARITY,)) < -1e9


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
    assert count > 800


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
    assert {(0, 3, 1), (1, 2, 1)} < set(map(tuple, listed(ringing, catalogue).tolist()))


@pytest.mark.parametrize(
    ("own", "other", "dropped"),
    [
        ("turn on", "turn off", True),
        ("Turn_Off the", "turn on THE", True),
        ("start recording on", "stop recording on", True),
        ("unlock", "lock", True),
        ("lock", "lock the cat flap", False),
        ("turn on", "dim", False),
        ("toggle", "turn on", True),
        ("turn off", "toggle", True),
        ("toggle", "dim", False),
        ("turn up", "turn down", True),
        ("turn off", "brighten", True),
        ("heat", "cool", False),
    ],
)
def test_the_opposite_of_an_own_rule_is_dropped(own: str, other: str, dropped: bool) -> None:
    catalogue = RuleCatalogue(entities=("Door", "Lamp"), relations=(f"opens → {own}", f"opens → {other}"))
    home = Home("h", (Device("d", 0), Device("l", 1)), as_edges([(0, 1, 0)]))
    assert ((0, 1, 1) not in set(map(tuple, listed(home, catalogue).tolist()))) == dropped


@pytest.mark.parametrize(
    ("own", "mirror", "dropped"),
    [
        ("is pressed twice → turn off", "turns on → turn on", True),
        ("turns on → turn on", "turns off → turn off", True),
        ("locks → start", "starts → lock", True),
        ("detects a sound → start recording on", "detects a sound → start recording on", False),
        ("gets too cold → turn up", "gets too cold → turn up", False),
    ],
)
def test_no_rule_mirrors_one_of_the_home_or_of_the_list(own: str, mirror: str, dropped: bool) -> None:
    names = tuple(dict.fromkeys((own, mirror)))
    catalogue, back = RuleCatalogue(entities=("Switch", "Lamp"), relations=names), len(names) - 1
    devices = (Device("hall a", 0), Device("hall b", 1))
    home, bare = (Home("h", devices, as_edges(rules)) for rules in ([(0, 1, 0)], []))
    assert ((1, 0, back) not in set(map(tuple, listed(home, catalogue).tolist()))) == dropped
    scores = np.full((2, 2, len(names)), np.nan)
    scores[0, 1, 0], scores[1, 0, back] = 2.0, 1.0
    assert len(shown(scores, bare, bare.rules, Abilities.of(catalogue), ListOptions())) == (1 if dropped else 2)
    again = Home("h", devices, as_edges([(0, 1, 0), (1, 0, 0)]))
    if own != mirror:
        assert (1, 0, back) in set(map(tuple, listed(again, catalogue).tolist()))  # the home acts both ways


def test_a_catalogue_may_name_further_opposites() -> None:
    catalogue = RuleCatalogue(
        entities=("Door", "Heater"), relations=("opens → cool", "opens → heat"), opposites=(("heat", "cool"),)
    )
    home = Home("h", (Device("d", 0), Device("h", 1)), as_edges([(0, 1, 1)]))
    assert (0, 1, 0) not in set(map(tuple, listed(home, catalogue).tolist()))


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
