"""Tables of rules: what is accepted, what is said of bad input, and the way back."""

from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import AREAS, COLUMNS, Home, Homes, describe, write_homes
from client.tasks.rules.data.reader import read_homes
from common.errors import DataError
from common.tasks.rules.vocabulary import demo_catalogue
from tests.support.files import Writer

RULE = "ann,Light,lamp 1,turns on,turn off,Plug,plug 1"


def sentences(path: Path) -> dict[str, list[str]]:
    """Home -> its rules, readable."""
    dataset = read_homes(path)
    return {
        home.name: [describe(home, rule, dataset.vocabulary) for rule in home.rules.tolist()] for home in dataset.units
    }


def as_names(home: Home) -> tuple[object, ...]:
    return home.name, home.devices, home.rules.tolist()


EXPECTED = {"ann": ["when Light lamp 1 turns on, turn off plug 1"]}


def test_blanks_around_cells_and_blank_lines_do_not_count(table: Writer) -> None:
    path = table(RULE, "", " bob , Light,7, turns off,turn on ,Light,8")
    assert sentences(path) == {**EXPECTED, "bob": ["when Light 7 turns off, turn on Light 8"]}


def test_columns_stand_in_any_order_others_are_ignored_and_ids_may_replace_names(table: Writer) -> None:
    header = "rule,action_id,user_id,trigger_device,trigger_device_id,trigger_state_id,action_device,action_device_id"
    path = table("x,38,ann,Light,lamp,9,Plug,plug", header=header)
    assert sentences(path) == {"ann": ["when Light lamp 9, 38 plug"]}


@pytest.mark.parametrize("name", ["homes.csv", "homes.csv.gz", "homes.tsv", "homes.tsv.gz"])
@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_tabs_semicolons_or_commas_gzipped_or_not(table: Writer, name: str, mark: str) -> None:
    path = table(RULE.replace(",", mark), "", header="\ufeff" + mark.join(COLUMNS), name=name)
    assert sentences(path) == EXPECTED


def test_quotes_hold_a_delimiter_and_count_for_nothing_between_tabs(table: Writer) -> None:
    quoted = table('ann,Light,"lamp, ""big""",turns on,turn off,Plug,plug 1')
    rule = 'ann\tLight\t"lamp, big"\tturns on\tturn off\tPlug\tplug 1'
    plain = table(rule, header="\t".join(COLUMNS), name="homes.tsv")
    names = [read_homes(path).units[0].devices[0].name for path in (quoted, plain)]
    assert names == ['lamp, "big"', '"lamp, big"']


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_a_title_may_hold_another_delimiter(table: Writer, mark: str) -> None:
    others = [other for other in "\t;," if other != mark]
    last = f'"{COLUMNS[0]}"' if mark != "\t" else COLUMNS[0]
    header = mark.join(["note", f'"{"".join(others)}"', *COLUMNS[1:], last])
    _, *rule = RULE.split(",")
    assert sentences(table(mark.join(["x", "y", *rule, "ann"]), header=header)) == EXPECTED


def test_blank_lines_before_the_header_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_text(f"\n\n{','.join(COLUMNS)}\n{RULE},x\n")
    with pytest.raises(DataError, match="line 4: 8 cells"):
        read_homes(tmp_path / "homes.csv")


def test_parquet_holds_the_same_rows_numbers_or_texts(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = dict(
        zip(COLUMNS, [["ann"], ["Light"], [7], [9.0], ["on"], ["Plug"], [8]], strict=True)
    )
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "homes.parquet")
    assert sentences(tmp_path / "homes.parquet") == {"ann": ["when Light 7 9, on Plug 8"]}


def test_homes_written_and_read_are_the_same_homes(tmp_path: Path) -> None:
    homes = demo_homes(0, 60, seed=3)
    homes = (*homes, replace(homes[0], name="newcomer", rules=homes[0].rules[:0]))
    write_homes(tmp_path / "homes.csv", Homes(homes, demo_catalogue()))
    again = read_homes(tmp_path / "homes.csv", demo_catalogue())
    assert [as_names(home) for home in again.units] == [as_names(home) for home in homes]


def test_areas_go_along_with_the_homes_that_have_them(table: Writer, tmp_path: Path) -> None:
    lines = "ann,Light,a,turns on,turn off,Light,b,Ground / Hall,", "bob,Light,a,,,,,Attic,", "bob,Light,c,,,,,,"
    dataset = read_homes(table(*lines, header=",".join((*COLUMNS, *AREAS))))
    write_homes(tmp_path / "again.csv", dataset)
    for homes in (dataset, read_homes(tmp_path / "again.csv", dataset.vocabulary)):
        areas = {(home.name, device.name): device.area for home in homes.units for device in home.devices}
        assert areas == {("ann", "a"): "Ground / Hall", ("ann", "b"): None, ("bob", "a"): "Attic", ("bob", "c"): None}
    assert not {"Ground", "Attic"} & set(dataset.vocabulary.to_json().split('"'))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.csv: no such file"):
        read_homes(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(("text", "complaint"), [("", "file is empty"), (",".join(COLUMNS) + "\n", "no rows")])
def test_an_empty_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "homes.csv").write_text(text)
    with pytest.raises(DataError, match=complaint):
        read_homes(tmp_path / "homes.csv")


def test_a_missing_column_is_named_with_the_one_that_was_probably_meant(table: Writer) -> None:
    path = table(RULE, header=",".join(COLUMNS).replace("trigger_state", "triger_state"))
    with pytest.raises(DataError, match="'triger_state' is near: rename it, or say --column trigger_state=") as caught:
        read_homes(path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 1, "trigger_state")


def test_a_line_of_another_width_is_named(table: Writer) -> None:
    with pytest.raises(DataError, match=r"line 3: 8 cells, but the first line has 7 \(1 of 2 rows\)"):
        read_homes(table(RULE, RULE + ",extra"))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("homes.csv", b"user_id,\xff\xfe\n", "line 1: not text in UTF-8"),
        ("homes.csv", b'user_id,"a" b\n', "no column 'trigger_device'"),
        ("homes.csv.gz", b"user_id\n", "cannot be read as gzip"),
        ("homes.parquet", b"user_id,\xff\xfe\n", "not Parquet, as its name says"),
        ("homes.parquet", b"PAR1user_id", "cannot be read as Parquet"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_homes(tmp_path / name)
