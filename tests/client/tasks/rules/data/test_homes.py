"""Homes and how their rules read."""

import numpy as np

from client.tasks.rules.data.homes import Device, Home, as_edges, describe
from common.tasks.rules.vocabulary import RuleCatalogue

CATALOGUE = RuleCatalogue(
    entities=("Contact sensor", "Light", "ios_photos"), relations=("opens → turn on", "any_new_photo → dim")
)


def home(*devices: Device) -> Home:
    return Home("ann", devices, as_edges([]))


def test_edges_are_distinct_and_ascending() -> None:
    np.testing.assert_array_equal(as_edges([(1, 0, 2), (0, 1, 3), (1, 0, 2)]), [[0, 1, 3], [1, 0, 2]])
    assert as_edges([]).shape == (0, 3)


def test_a_rule_reads_as_a_sentence() -> None:
    named = home(Device("Front door contact sensor", 0), Device("Hall light", 1))
    assert describe(named, (0, 1, 0), CATALOGUE) == "when Front door contact sensor opens, turn on Hall light"


def test_ids_that_do_not_say_the_type_get_it_in_front() -> None:
    numbered = home(Device("7f3a", 0), Device("12", 1))
    assert describe(numbered, (0, 1, 0), CATALOGUE) == "when Contact sensor 7f3a opens, turn on Light 12"


def test_services_read_without_underscores() -> None:
    services = home(Device("ios_photos", 2), Device("Light", 1))
    assert describe(services, (0, 1, 1), CATALOGUE) == "when ios photos any new photo, dim Light"
