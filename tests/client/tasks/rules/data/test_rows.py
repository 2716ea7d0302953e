"""From rows to homes: order, duplicates, vocabulary."""

import numpy as np
import pytest

from client.tasks.rules.data.rows import Row, derive_catalogue, to_dataset
from common.errors import DataError, VocabularyError
from common.tasks.rules.vocabulary import RuleCatalogue

ROWS = [
    Row("bob", "Light", "b", "turns on", "turn off", "Plug", "p", "homes.csv", 2),
    Row("ann", "Light", "a", "turns on", "turn off", "Light", "b", "homes.csv", 3),
    Row("bob", "Plug", "p", "turns off", "turn off", "Light", "b", "homes.csv", 4),
]


def test_the_catalogue_of_the_data_is_alphabetical() -> None:
    catalogue = derive_catalogue(ROWS)
    assert catalogue.entities == ("Light", "Plug")
    assert catalogue.relations == ("turns off → turn off", "turns on → turn off")


def test_homes_do_not_depend_on_the_order_of_rows() -> None:
    ann, bob = to_dataset(ROWS).units
    assert [(device.name, device.entity) for device in bob.devices] == [("b", 0), ("p", 1)]
    np.testing.assert_array_equal(bob.rules, [[0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(ann.rules, [[0, 1, 1]])
    for home, again in zip((ann, bob), to_dataset(ROWS[::-1]).units, strict=True):
        assert (home.name, home.devices) == (again.name, again.devices)
        np.testing.assert_array_equal(home.rules, again.rules)


def test_duplicates_are_dropped_and_counted() -> None:
    dataset = to_dataset([*ROWS, ROWS[0]._replace(line=5), ROWS[1]])
    assert sum(len(home.rules) for home in dataset.units) == 3
    assert dataset.notes == ("2 duplicate rules dropped",)


def test_one_id_may_serve_devices_of_two_types() -> None:
    (home,) = to_dataset([Row("ann", "Light", "1", "turns on", "turn off", "Plug", "1")]).units
    assert len(home.devices) == 2


def test_a_home_may_have_one_device_that_triggers_itself() -> None:
    (home,) = to_dataset([Row("ann", "Light", "1", "turns on", "turn off", "Light", "1")]).units
    np.testing.assert_array_equal(home.rules, [[0, 0, 0]])


def test_an_unknown_device_type_is_placed_and_counted_but_not_quoted() -> None:
    catalogue = RuleCatalogue(entities=("Lights",), relations=derive_catalogue(ROWS).relations)
    with pytest.raises(VocabularyError, match="lacks this device type; the nearest it has is 'Lights'") as caught:
        to_dataset(ROWS, catalogue)
    assert "3 of 3 rows" in str(caught.value)
    assert (caught.value.line, caught.value.column) == (2, "trigger_device")
    assert "bob" not in str(caught.value)


def test_an_unknown_relation_is_placed_and_counted() -> None:
    catalogue = RuleCatalogue(entities=("Light", "Plug"), relations=("turns on → turn off",))
    with pytest.raises(VocabularyError, match=r"homes.csv, line 4, column 'trigger_state'.*1 of 3 rows"):
        to_dataset(ROWS, catalogue)


def test_a_relation_that_could_not_be_read_back_is_refused() -> None:
    with pytest.raises(DataError, match="line 2: trigger state and action must not"):
        to_dataset([ROWS[0]._replace(action="a → b")])
