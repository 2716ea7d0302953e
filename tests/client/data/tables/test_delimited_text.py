"""Delimited text and JSON lines: delimiters, headers, rows that do not fit, and where a row stands."""

import json

import pytest

from client.data.tables.reader import read_table
from client.data.tables.schema import Column, TableSchema
from client.data.tables.table import Table
from common.errors import DataError
from tests.support.files import Writer

SCHEMA = TableSchema(
    (Column("a", "text", ("alpha",)), Column("n", "number", blank="missing"), Column("t", "time", required=False)),
    positions=("a", "n", "t"),
)


def cells(table: Table) -> list[list[object]]:
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns.values()), strict=True)]


@pytest.mark.parametrize("mark", ["\t", ";", ",", "|"])
def test_the_delimiter_that_sets_known_titles_apart_is_taken(text: Writer, mark: str) -> None:
    others = "".join(other for other in "\t;,|" if other != mark)
    quoted = f'"x{others}y"' if mark != "\t" else f"x{others}y"
    assert cells(read_table(text(mark.join((quoted, "n", "a")), mark.join(("1", "2", "b"))), SCHEMA)) == [["b", 2]]


@pytest.mark.parametrize(("name", "mark"), [("a.txt", "  "), ("a.dat", "::"), ("a.dat", " ")])
def test_blanks_and_two_colons_of_published_sets(text: Writer, name: str, mark: str) -> None:
    assert cells(read_table(text(mark.join("na"), mark.join("1b"), name=name), SCHEMA)) == [["b", 1]]
    assert cells(read_table(text(mark.join("b1"), name=name), SCHEMA)) == [["b", 1]], "without a header"


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_a_file_without_a_header_is_known_by_its_numbers_and_times(text: Writer, mark: str) -> None:
    lines = (("x", "-1.5", "2024-05-31"), ("y", "2", "2024-06-01"))
    table = read_table(text(*(mark.join(line) for line in lines)), SCHEMA)
    assert cells(table) == [["x", -1.5, 1717113600], ["y", 2, 1717200000]]
    assert cells(read_table(text(*(mark.join(line[:2]) for line in lines)), SCHEMA)) == [["x", -1.5], ["y", 2]]
    with pytest.raises(DataError, match="line 1, column 'a': no column 'a'"):
        read_table(text(mark.join(("x", "y", "2024-05-31"))), SCHEMA)


def test_line_breaks_in_quotes_and_a_quote_within_a_cell(text: Writer) -> None:
    table = read_table(text('"a","n"', '"x', 'y",1', '5" pipe,2', '"say ""z""",3'), SCHEMA)
    assert cells(table) == [["x\ny", 1], ['5" pipe', 2], ['say "z"', 3]]


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (("a,n", "x,1", "y,two"), 3),
        (("", "a,n", "", "x,1", " ", "", "y,two"), 7),
        (('"a', '",n', '"x', "", 'z",1', "", "y,two"), 7),
        (("a,n", ",", "x,1", '"y', '",two'), 4),
    ],
)
def test_the_line_of_a_cell_is_that_of_the_file(text: Writer, lines: tuple[str, ...], line: int) -> None:
    with pytest.raises(DataError, match=rf"line {line}, column 'n': 'two' is not a number \(1 of 2 cells\)"):
        read_table(text(*lines), SCHEMA)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("a,n", "x,1", "", "y", "z,2,3"), "line 4: 1 cells, but the first line has 2 (2 of 3 rows); correct the rows"),
        (("a;n", "x;1;2"), "line 2: 3 cells, but the first line has 2 (1 of 1 row)"),
        (("a,n", '"x', "y,1"), "line 2: a quote opens and is not closed (1 of 1 row); close it"),
        (("a,n", "", " "), "the file has a header but no rows"),
        (("a,n", ",", ",,"), "the file has a header but no rows"),
        (('""', ""), "no column 'a'"),
        (('"a,n', "x,1"), "no column 'a'"),
    ],
)
def test_rows_that_do_not_fit_the_header(text: Writer, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_table(text(*lines), SCHEMA)
    assert message in str(caught.value)


def test_the_header_again_between_rows_is_no_row(text: Writer) -> None:
    assert cells(read_table(text("a,n", "x,1", "a,n", "z,2"), SCHEMA)) == [["x", 1], ["z", 2]]


def test_rows_without_any_text_are_skipped_but_not_those_with_text_elsewhere(text: Writer) -> None:
    assert cells(read_table(text("a,n,x", "b,1,", ", ,", "c,2,", ",,"), SCHEMA)) == [["b", 1], ["c", 2]]
    with pytest.raises(DataError, match=r"line 3, column 'a': empty cell \(1 of 2 cells\)"):
        read_table(text("a,n,x", "b,1,", ",,y"), SCHEMA)


def test_a_cell_is_shown_cut_and_without_what_does_not_print(text: Writer) -> None:
    with pytest.raises(DataError) as caught:
        read_table(text("a,n", f"x,\x1b[31m{'9' * 99}\u202e"), SCHEMA)
    assert caught.value.cell == "\\x1b[31m" + "9" * 31 + "…"
    assert len(caught.value.cell) == 40
    assert f"column 'n': '{caught.value.cell}' is not a number" in str(caught.value)


def objects(*records: dict[str, object]) -> list[str]:
    return [json.dumps(record) for record in records]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.txt"])
def test_json_lines_hold_numbers_texts_lists_and_nothing(text: Writer, name: str) -> None:
    one_kind = objects({"a": 1, "n": 2, "x": {"y": []}}, {"a": 3, "n": 2.5}, {"n": None, "a": 4, "x": [1]})
    assert cells(read_table(text(*one_kind, name=name), SCHEMA)) == [["1", 2], ["3", 2.5], ["4", None]]
    several = objects({"a": 1, "n": "2"}, {"a": "x", "n": 2.5}, {"a": ["p", 2.0], "n": "NA"}, {"a": True, "n": -1})
    expected = [["1", 2], ["x", 2.5], ["p,2", None], ["true", -1]]
    assert cells(read_table(text(*several, name=name), SCHEMA)) == expected
    assert cells(read_table(text(several[0], "", *several[1:], name=name), SCHEMA)) == expected


def test_a_key_that_later_objects_have_is_a_column(text: Writer) -> None:
    lines = objects({"a": "x", "n": 1}, {"a": "y", "n": 1, "t": "2024-05-31"})
    with pytest.raises(DataError, match="row 1, column 't': empty cell"):
        read_table(text(*lines, name="a.jsonl"), SCHEMA)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": "x"', "row 3: not a JSON object; write"),
        ("[1]", "row 3: not a JSON object"),
        ('{"a": "x", "n": 1} {"a": "y", "n": 2}', "row 3: not a JSON object"),
        ('{"a": {"b": 1}, "n": 1}', "row 3, column 'a': an object; write its values as columns of their own"),
        ('{"a": ["p,q"], "n": 1}', "row 3, column 'a': a list of texts with commas"),
        ('{"a": "\\ud800", "n": 1}', "row 3, column 'a': "),
        (f'{{"a": {"9" * 5_000}, "n": 1}}', "row 3: not a JSON object"),
        (f'{{"a": {"[" * 100_000}{"]" * 100_000}, "n": 1}}', "row 3: not a JSON object"),
        (f'{{"x": {"[" * 500_000}{"]" * 500_000}, "a": "x", "n": "no"}}', "row 3"),
    ],
)
@pytest.mark.parametrize("count", [1, 2_000])
def test_a_line_that_is_no_object_is_named(text: Writer, line: str, message: str, count: int) -> None:
    """Also where it lies beyond the first objects, whose values tell the types."""
    fine = objects({"a": "x", "n": 1}, {"a": "y", "n": 2.5}) * count
    with pytest.raises(DataError) as caught:
        read_table(text(*fine, line, name="a.jsonl"), SCHEMA)
    assert message.replace("row 3", f"row {2 * count + 1}") in str(caught.value)
