"""Rooms of devices, by area and by name."""

import numpy as np
import pytest

from client.tasks.rules.areas import FLOOR, OPEN, OTHER, SAME, lacks_evidence, nearness, nearness_of
from client.tasks.rules.data.homes import Device, Home, as_edges
from common.tasks.rules.vocabulary import RuleCatalogue


@pytest.mark.parametrize(
    ("first", "second", "near"),
    [
        (Device("a", 0, "Kitchen"), Device("b", 1, "Kitchen"), SAME),
        (Device("a", 0, "Bedroom 1"), Device("b", 1, "Bedroom 2"), OTHER),
        (Device("a", 0, "Ground / Kitchen"), Device("b", 1, "Ground / Hall"), FLOOR),
        (Device("a", 0, "Ground / Bath"), Device("b", 1, "Upper / Bath"), OTHER),
        (Device("binary_sensor.kitchen_motion", 0), Device("light.kitchen", 1), SAME),
        (Device("binary_sensor.kitchen_motion", 0), Device("light.hall", 1), OTHER),
        (Device("binary_sensor.bath_motion", 0), Device("light.bathroom", 1), SAME),
        (Device("binary_sensor.bath_motion", 0), Device("light.bed", 1), OTHER),
        (Device("binary_sensor.kuche_bewegung", 0), Device("Küche Licht", 1), SAME),
        (Device("light.living_room_lamp", 0), Device("Living TV", 1, "Living room"), SAME),
        (Device("light.bedroom", 0), Device("a", 1, "Kids bedroom"), OPEN),
        (Device("sensor.washer_power", 0), Device("switch.washer", 1), SAME),
        (Device("binary_sensor.front_door", 0), Device("light.back_door", 1), OPEN),
        (Device("device 12", 0), Device("light 12", 1), OPEN),
        (Device("sun.sun", 0), Device("cover.office", 1), OPEN),
        (Device("Hall motion sensor", 0), Device("Hall light", 1), SAME),
    ],
)
def test_devices_are_near_by_area_or_by_name(first: Device, second: Device, near: float) -> None:
    assert nearness_of(first, second) == nearness_of(second, first) == near


CATALOGUE = RuleCatalogue(
    entities=("Door", "Lamp", "Sun", "Toggle helper", "Switch"), relations=("opens → turn off", "opens → turn on")
)


@pytest.mark.parametrize(("kind", "area", "vague"), [(3, None, True), (4, None, False), (4, "hall", True)])
def test_a_device_of_unknown_purpose_is_no_kind(kind: int, area: str | None, vague: bool) -> None:
    home = Home("h", (Device("a", kind), Device("b", kind), Device("lamp", 1, area)), as_edges([]))
    assert lacks_evidence(home, as_edges([(0, 2, 1)]), CATALOGUE)[:, 2].all(axis=1).tolist() == [vague, vague, False]


def test_a_rule_between_rooms_needs_an_own_one_of_its_kind() -> None:
    names = ("hall door", "kitchen door", "hall lamp", "kitchen lamp", "sun")
    home = Home("h", tuple(Device(name, kind) for name, kind in zip(names, (0, 0, 1, 1, 2), strict=True)), as_edges([]))
    without = lacks_evidence(home, home.rules, CATALOGUE)
    assert without.any(axis=2).tolist() == (nearness(home) == OTHER).tolist()
    assert without[0, 3].all()
    assert not without[0, 2].any()
    assert not without[4].any()
    evident = lacks_evidence(home, as_edges([(0, 3, 1), (0, 2, 0)]), CATALOGUE)
    assert np.argwhere(without & ~evident).tolist() == [[0, 3, 1], [1, 2, 1]]
