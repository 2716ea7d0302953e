"""The embedded homes: the paper's statistics, sense, and something to learn."""

from collections import Counter

import numpy as np
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Home
from common.tasks.rules.vocabulary import ACTIONS, STATES, demo_catalogue, relation_parts

CATALOGUE = demo_catalogue()


@pytest.fixture(scope="module")
def homes() -> tuple[Home, ...]:
    return demo_homes(0, 5000, seed=0)


def test_the_catalogue_has_the_papers_sizes() -> None:
    assert (len(CATALOGUE.entities), len(CATALOGUE.relations)) == (11, 163)


def test_homes_have_the_papers_number_of_rules_with_a_heavy_tail(homes: tuple[Home, ...]) -> None:
    sizes = np.array([len(home.rules) for home in homes])
    assert sizes.mean() == pytest.approx(2.65, abs=0.15)
    assert np.median(sizes) <= 2
    assert sizes.max() >= 30
    assert np.sort(sizes)[-50:].sum() > 0.05 * sizes.sum()  # 1 % of the homes hold over 5 % of the rules


def test_every_relation_is_used_and_every_rule_makes_sense(homes: tuple[Home, ...]) -> None:
    used = set()
    for home in homes:
        for u, v, r in home.rules.tolist():
            state, action = relation_parts(CATALOGUE.relations[r])
            trigger, target = (CATALOGUE.entities[home.devices[node].entity] for node in (u, v))
            assert u != v
            assert state in STATES[trigger]
            assert action in ACTIONS[target]
            used.add(r)
    assert len(used) == 163


def test_homes_have_several_devices_of_a_type_with_names_of_their_own(homes: tuple[Home, ...]) -> None:
    several = 0
    for home in homes:
        assert len({device.name for device in home.devices}) == len(home.devices)
        several += max(Counter(device.entity for device in home.devices).values()) > 1
    assert several > len(homes) / 3


def test_tastes_differ_and_show_in_the_devices(homes: tuple[Home, ...]) -> None:
    """What a home's rules act on goes with what else it owns."""
    camera, vacuum = CATALOGUE.entities.index("Camera"), CATALOGUE.entities.index("Robot vacuum")
    light = CATALOGUE.entities.index("Light")

    def share_to(action_entity: int, owned: int) -> float:
        targets = [
            home.devices[v].entity == action_entity
            for home in homes
            if any(device.entity == owned for device in home.devices)
            for v in home.rules[:, 1].tolist()
        ]
        return float(np.mean(targets))

    assert share_to(camera, owned=camera) > 4 * share_to(camera, owned=light)
    assert share_to(vacuum, owned=vacuum) > 4 * share_to(vacuum, owned=camera)


def test_a_home_depends_on_seed_and_number_only() -> None:
    def key(home: Home) -> tuple[object, ...]:
        return home.name, home.devices, home.rules.tolist()

    assert [key(h) for h in demo_homes(10, 13, 7)] == [key(h) for h in demo_homes(0, 20, 7)[10:13]]
    assert [key(h) for h in demo_homes(0, 20, 7)] != [key(h) for h in demo_homes(0, 20, 8)]
