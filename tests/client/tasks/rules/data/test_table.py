"""The plain table: what it accepts, what it says of bad input, and the way back."""

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from client.tasks.rules.data.table import COLUMNS, read_table, write_table

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Home
from client.tasks.rules.data.rows import Row, to_dataset
from common.errors import DataError
from common.tasks.rules.demo import demo_catalogue

RULE = "ann,Light,lamp 1,turns on,turn off,Plug,plug 1"
TableWriter = Callable[..., Path]


def as_names(home: Home) -> tuple[object, ...]:
    return home.name, home.devices, home.rules.tolist()


def test_a_rule_is_read_with_its_place(table: TableWriter) -> None:
    path = table(RULE, "", " bob , Light,7, turns off,turn on ,Light,8")
    assert read_table(path) == [
        Row("ann", "Light", "lamp 1", "turns on", "turn off", "Plug", "plug 1", str(path), 2),
        Row("bob", "Light", "7", "turns off", "turn on", "Light", "8", str(path), 4),
    ]


def test_columns_stand_in_any_order_others_are_ignored_and_ids_may_replace_names(table: TableWriter) -> None:
    header = "rule,action_id,user_id,trigger_device,trigger_device_id,trigger_state_id,action_device,action_device_id"
    rows = read_table(table("x,38,ann,Light,lamp,9,Plug,plug", header=header))
    assert rows[0][:7] == ("ann", "Light", "lamp", "9", "38", "Plug", "plug")


@pytest.mark.parametrize("name", ["homes.csv", "homes.csv.gz", "homes.tsv", "homes.tsv.gz"])
@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_tabs_semicolons_or_commas_gzipped_or_not(table: TableWriter, name: str, mark: str) -> None:
    path = table(RULE.replace(",", mark), "", RULE.replace(",", mark), header="\ufeff" + mark.join(COLUMNS), name=name)
    rule = ("ann", "Light", "lamp 1", "turns on", "turn off", "Plug", "plug 1", str(path))
    assert read_table(path) == [Row(*rule, 2), Row(*rule, 4)]


def test_quotes_hold_a_delimiter_and_count_for_nothing_between_tabs(table: TableWriter) -> None:
    quoted = table('ann,Light,"lamp, ""big""",turns on,turn off,Plug,plug 1')
    plain = table(
        'ann\tLight\t"lamp, big"\tturns on\tturn off\tPlug\tplug 1', header="\t".join(COLUMNS), name="homes.tsv"
    )
    assert [read_table(path)[0].trigger_id for path in (quoted, plain)] == ['lamp, "big"', '"lamp, big"']


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_a_title_may_hold_another_delimiter(table: TableWriter, mark: str) -> None:
    others = [other for other in "\t;," if other != mark]
    header = mark.join(
        ["note", f'"{"".join(others)}"', *COLUMNS[1:], f'"{COLUMNS[0]}"' if mark != "\t" else COLUMNS[0]]
    )
    _, *rule = RULE.split(",")
    assert read_table(table(mark.join(["x", "y", *rule, "ann"]), header=header))[0][:7] == ("ann", *rule)


def test_blank_lines_before_the_header_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_text(f"\n\n{','.join(COLUMNS)}\n{RULE}\n")
    assert [row.line for row in read_table(tmp_path / "homes.csv")] == [4]


def test_parquet_holds_the_same_rows_numbers_or_texts(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = dict(
        zip(COLUMNS, [["ann"], ["Light"], [7], [9.0], ["on"], ["Plug"], [8]], strict=True)
    )
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "homes.parquet")
    assert read_table(tmp_path / "homes.parquet")[0][:7] == ("ann", "Light", "7", "9", "on", "Plug", "8")


def test_rows_without_rule_declare_devices(table: TableWriter) -> None:
    dataset = to_dataset(read_table(table("ann,Light,lamp,,,,", "bob,Light,lamp,,,Plug,plug", RULE)))
    assert [(home.name, len(home.devices), len(home.rules)) for home in dataset.units] == [("ann", 3, 1), ("bob", 2, 0)]
    assert dataset.notes == ()


def test_homes_written_and_read_are_the_same_homes(tmp_path: Path) -> None:
    homes = demo_homes(0, 60, seed=3)
    assert any(not len(home.rules) for home in homes)
    write_table(tmp_path / "homes.csv", homes, demo_catalogue())
    again = to_dataset(read_table(tmp_path / "homes.csv"), demo_catalogue())
    assert [as_names(home) for home in again.units] == [as_names(home) for home in homes]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.csv: no such file"):
        read_table(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(("text", "complaint"), [("", "file is empty"), (",".join(COLUMNS) + "\n", "no rows")])
def test_an_empty_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "homes.csv").write_text(text)
    with pytest.raises(DataError, match=complaint):
        read_table(tmp_path / "homes.csv")


def test_a_missing_column_is_named_with_the_one_that_was_probably_meant(table: TableWriter) -> None:
    path = table(RULE, header=",".join(COLUMNS).replace("trigger_state", "triger_state"))
    with pytest.raises(DataError, match=r"missing; did you mean it by 'triger_state'\?") as caught:
        read_table(path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 1, "trigger_state")


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
def test_an_empty_cell_is_named_by_line_and_column(table: TableWriter, row: str, column: str) -> None:
    with pytest.raises(DataError, match="empty cell") as caught:
        read_table(table(RULE, row))
    assert (caught.value.line, caught.value.column) == (3, column)


def test_a_line_of_another_width_is_named(table: TableWriter) -> None:
    with pytest.raises(DataError, match="line 3: 8 cells, but the header names 7 columns"):
        read_table(table(RULE, RULE + ",extra"))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("homes.csv", b"user_id,\xff\xfe\n", "not text in UTF-8"),
        ("homes.csv", b'user_id,"a" b\n', r"cannot be read as \.csv"),
        ("homes.csv.gz", b"user_id\n", "cannot be read; is it complete"),
        ("homes.parquet", b"user_id,\xff\xfe\n", r"cannot be read as \.parquet"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_table(tmp_path / name)
