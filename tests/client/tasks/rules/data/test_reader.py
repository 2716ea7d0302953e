"""Which form a source is in, and what is said where it is in none."""

from pathlib import Path

import pytest

from client.data.read import read_all
from client.tasks.rules.data.generator import demo_catalogue
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.task import TASK
from common.errors import DataError, VocabularyError
from common.tasks.rules.vocabulary import RuleCatalogue
from tests.support.files import Writer

RULE = "ann,Light,lamp 1,turns on,turn off,Plug,plug 1"


def test_the_demo_or_some_of_it() -> None:
    assert len(read_all("rules", "demo").units) == TASK.demo_units
    some = read_all("rules", "demo:50-60", vocabulary=demo_catalogue(), seed=2)
    assert some.units[0].name == "home-00050"
    assert len(some.units) == 10


def test_the_demo_speaks_its_own_catalogue_only() -> None:
    with pytest.raises(VocabularyError, match="embedded data do not fit"):
        read_all("rules", "demo", vocabulary=RuleCatalogue(entities=("Light",), relations=()))


@pytest.mark.parametrize("source", ["demo:5-5", "demo:9-3"])
def test_an_empty_range_of_the_demo_is_refused(source: str) -> None:
    with pytest.raises(DataError, match="START below STOP"):
        read_all("rules", source)


def test_a_table_with_or_without_a_catalogue(table: Writer) -> None:
    derived = read_homes(table(RULE))
    names = {"entities": ("Light", "Plug"), "relations": ("turns on → turn off",)}
    assert derived.vocabulary == RuleCatalogue(**names, notices={"Light": ("turns on",)}, does={"Plug": ("turn off",)})
    wider = RuleCatalogue(entities=("Camera", "Plug", "Light"), relations=("opens → dim", "turns on → turn off"))
    given = read_homes(table(RULE), wider)
    assert given.vocabulary is wider
    assert given.units[0].rules.tolist() == [[0, 1, 1]]
    assert [device.entity for device in given.units[0].devices] == [2, 1]


def test_a_folder_of_tables_is_one_data_set(table: Writer) -> None:
    table(RULE, name="a.csv")
    folder = table(RULE, RULE.replace("ann", "bob"), name="b.csv.gz").parent
    dataset = read_homes(folder)
    assert [home.name for home in dataset.units] == ["ann", "bob"]
    assert dataset.notes == ("1 duplicate rule dropped",)


def test_the_recrules_form_in_both_setups(recrules: Path) -> None:
    assert len(read_homes(recrules).vocabulary.relations) == 139
    assert len(read_homes(recrules, setup="B").vocabulary.relations) == 103


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        read_homes(tmp_path / "nowhere")


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no table"):
        read_homes(tmp_path)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "homes.xlsx").touch()
    with pytest.raises(DataError, match=r"'\.xlsx' is no known form"):
        read_homes(tmp_path / "homes.xlsx")
