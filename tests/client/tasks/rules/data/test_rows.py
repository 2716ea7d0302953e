"""From tables to rows and homes: cells, order, duplicates, vocabulary."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.data.tables.account import RowAccount
from client.data.tables.reader import read_table
from client.data.tables.schema import join_rows
from client.tasks.rules.data.homes import SCHEMA, Homes
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.data.rows import CODED, RuleRows, derive_catalogue, to_dataset, to_rows
from common.errors import DataError, VocabularyError
from common.tasks.rules.vocabulary import RuleCatalogue
from tests.support.files import Writer

RULE = "ann,Light,lamp 1,turns on,turn off,Plug,plug 1"
LINES = (
    "bob,Light,b,turns on,turn off,Plug,p",
    "ann,Light,a,turns on,turn off,Light,b",
    "bob,Plug,p,turns off,turn off,Light,b",
)


def opened(rows: int) -> RowAccount:
    """Return an account of so many rows."""
    account = RowAccount()
    account.open(None, rows)
    return account


def rows(path: Path) -> RuleRows:
    return to_rows(read_table(path, SCHEMA))


def homes(path: Path) -> Homes:
    found = rows(path)
    return to_dataset(found, derive_catalogue(found), opened(len(found.row)))


def test_the_catalogue_of_the_data_is_alphabetical(table: Writer) -> None:
    catalogue = derive_catalogue(rows(table(*LINES)))
    assert catalogue.entities == ("Light", "Plug")
    assert catalogue.relations == ("turns off → turn off", "turns on → turn off")


def test_the_catalogue_states_the_abilities_that_the_rows_show(table: Writer) -> None:
    catalogue = derive_catalogue(rows(table(*LINES, "ann,Idle,x,,,,")))
    assert catalogue.entities == ("Idle", "Light", "Plug")
    assert catalogue.notices == {"Light": ("turns on",), "Plug": ("turns off",)}
    assert catalogue.does == {"Light": ("turn off",), "Plug": ("turn off",)}
    devices_only = derive_catalogue(rows(table("ann,Idle,x,,,,")))
    assert (devices_only.notices, devices_only.does) == ({}, {})


def test_homes_do_not_depend_on_the_order_of_rows(table: Writer) -> None:
    ann, bob = homes(table(*LINES)).units
    assert [(device.name, device.entity) for device in bob.devices] == [("b", 0), ("p", 1)]
    np.testing.assert_array_equal(bob.rules, [[0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(ann.rules, [[0, 1, 1]])
    for home, again in zip((ann, bob), homes(table(*LINES[::-1])).units, strict=True):
        assert (home.name, home.devices) == (again.name, again.devices)
        np.testing.assert_array_equal(home.rules, again.rules)


def test_duplicates_are_dropped_and_counted(table: Writer) -> None:
    dataset = homes(table(*LINES, LINES[0], LINES[1]))
    assert sum(len(home.rules) for home in dataset.units) == 3
    assert dataset.notes == ("2 duplicate rules dropped",)


def test_one_id_may_serve_devices_of_two_types(table: Writer) -> None:
    (home,) = homes(table("ann,Light,1,turns on,turn off,Plug,1")).units
    assert len(home.devices) == 2


def test_a_home_may_have_one_device_that_triggers_itself(table: Writer) -> None:
    (home,) = homes(table("ann,Light,1,turns on,turn off,Light,1")).units
    np.testing.assert_array_equal(home.rules, [[0, 0, 0]])


def test_rows_without_rule_declare_devices(table: Writer) -> None:
    dataset = homes(table("ann,Light,lamp,,,,", "bob,Light,lamp,,,Plug,plug", RULE))
    assert [(home.name, len(home.devices), len(home.rules)) for home in dataset.units] == [("ann", 3, 1), ("bob", 2, 0)]
    assert dataset.notes == ()


def test_rows_of_several_files_are_joined_by_name(table: Writer) -> None:
    first, second = rows(table(*LINES[:1], name="a.csv")), rows(table(*LINES[1:], name="b.csv"))
    joined = join_rows([first, replace(second, row=second.row + 1)], CODED)
    whole = homes(table(*LINES, name="c.csv"))
    for ours, theirs in zip(
        to_dataset(joined, derive_catalogue(joined), opened(len(LINES))).units, whole.units, strict=True
    ):
        assert (ours.name, ours.devices) == (theirs.name, theirs.devices)
        np.testing.assert_array_equal(ours.rules, theirs.rules)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (",Light,lamp,turns on,turn off,Plug,plug", "user_id"),
        ("ann,Light,lamp,,turn off,Plug,plug", "trigger_state"),
        ("ann,Light,lamp,turns on,turn off,Plug, ", "action_device_id"),
        ("ann,Light,lamp,,,,plug", "action_device"),
        ("ann,,lamp,,,,", "trigger_device"),
    ],
)
def test_an_empty_cell_is_named_by_line_and_column(table: Writer, row: str, column: str) -> None:
    with pytest.raises(DataError, match="empty cell") as caught:
        rows(table(RULE, row))
    assert (caught.value.line, caught.value.column) == (3, column)


def test_a_relation_that_could_not_be_read_back_is_refused(table: Writer) -> None:
    with pytest.raises(DataError, match="line 3, column 'action': 'a → b' contains ' → '"):
        rows(table(RULE, "ann,Light,a,turns on,a → b,Light,b"))


def test_data_outside_the_vocabulary_are_placed_and_counted_but_not_quoted(table: Writer) -> None:
    relations = derive_catalogue(rows(table(*LINES))).relations
    with pytest.raises(VocabularyError, match=r"3 rows skipped.*the closest name is 'Lights'") as caught:
        read_homes(table(*LINES), RuleCatalogue(entities=("Lights",), relations=relations))
    assert "line 2, column 'trigger_device'" in str(caught.value)
    assert "bob" not in str(caught.value)


def test_a_rule_outside_the_vocabulary_is_skipped_and_leaves_its_devices(table: Writer) -> None:
    catalogue = RuleCatalogue(entities=("Light", "Plug"), relations=("turns on → turn off",))
    found = read_homes(table(*LINES), catalogue)
    assert [len(home.rules) for home in found.units] == [1, 1]
    assert [device.name for device in found.units[1].devices] == ["b", "p"]
    [note] = found.notes
    assert note.startswith("1 row skipped: the vocabulary lacks")
    assert "first in line 4, column 'trigger_state'" in note
    without_plugs = read_homes(table(*LINES), RuleCatalogue(entities=("Light",), relations=("turns on → turn off",)))
    ann, bob = without_plugs.units
    assert (len(ann.rules), len(bob.rules), [device.name for device in bob.devices]) == (1, 0, ["b"])


def test_a_file_outside_the_vocabulary_is_skipped_among_others(tmp_path: Path, table: Writer) -> None:
    catalogue = derive_catalogue(rows(table(*LINES)))
    (tmp_path / "homes").mkdir()
    for name, lines in (("one", LINES), ("two", ["eve,Fan,f,spins,stop,Fan,g"])):
        table(*lines).rename(tmp_path / "homes" / f"{name}.csv")
    found = read_homes(tmp_path / "homes", catalogue)
    assert [home.name for home in found.units] == ["ann", "bob"]
    assert found.notes[0].startswith("1 row skipped")
