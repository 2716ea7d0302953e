"""Cells as text, numbers and codes, and tables for the owner only."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pytest

from client.data.tables.files import write_private_csv
from client.data.tables.schema import CellError, Decimal, combine_codes, index_names, recode, sort_unique
from client.data.tables.table import to_codes, to_numbers, to_text


def numbers(*cells: str, decimal: Decimal = "auto", commas: bool = False) -> list[float | None]:
    found: list[float | None] = to_numbers(pyarrow.array(cells), decimal, commas).to_pylist()
    return found


def refusal(*cells: str, decimal: Decimal = "auto", commas: bool = False) -> tuple[list[bool], str, str]:
    with pytest.raises(CellError) as caught:
        numbers(*cells, decimal=decimal, commas=commas)
    return caught.value.wrong.tolist(), caught.value.problem, caught.value.remedy


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("1", "-2.5", "+3", " 4 ", ".5", "6.", "1e3", "0012"), [1, -2.5, 3, 4, 0.5, 6, 1000, 12]),
        (("1", "", "NA", "n/a", "NaN", "null", "NONE", "nil"), [1, *[None] * 7]),
        (("-", "--", "?", ".", "#N/A", "#VALUE!", "-1"), [*[None] * 6, -1]),
        (("1,5", "2", "-3,25"), [1.5, 2, -3.25]),
        (("1.234,5", "7", "1.234.567"), [1234.5, 7, 1234567]),
        (("1,234.5", "7"), [1234.5, 7]),
        (("1,234,567", "7"), [1234567, 7]),
        (("1 234.5", "2\u00a0000", "3'000", "4\u202f000"), [1234.5, 2000, 3000, 4000]),
        (("1 234,5",), [1234.5]),
        (("1.234", "5.678"), [1.234, 5.678]),
        (("\N{MINUS SIGN}5", "2"), [-5, 2]),
        (("45%", " 7 %", "NA"), [45, 7, None]),
        (("€ 3,50", "\N{MINUS SIGN}1,00 €"), [3.5, -1]),
        (("512 kB", "1.5 MB", "0", "2 KiB"), [512e3, 1.5e6, 0, 2048]),
        (("1,5 kWh", "900 Wh", "2.000 Wh"), [1500, 900, 2000]),
        (("★★★", "★★★☆☆", "★½", "☆☆☆☆☆", "⭐⭐\ufe0f", "NA"), [3, 3, 1.5, 0, 2, None]),
        (("4.5 ★", "3★"), [4.5, 3]),
        (("4/5", "2/5"), [4, 2]),
        (("♥♥♥", "♥"), [3, 1]),
        ((), []),
    ],
)
def test_numbers(cells: tuple[str, ...], expected: list[float | None]) -> None:
    assert numbers(*cells) == expected


@pytest.mark.parametrize("commas", [False, True])
def test_thousands_alone_are_ambiguous_and_the_owner_decides(commas: bool) -> None:
    question = ([True, False], "has a decimal comma or a thousands separator", "say --decimal comma or --decimal point")
    assert refusal("1,234", "5", commas=commas) == question
    assert numbers("1,234", "5", decimal="comma") == [1.234, 5]
    assert numbers("1,234", "5", decimal="point") == [1234, 5]
    assert numbers("1.234", decimal="comma") == [1234]


def test_between_commas_a_decimal_comma_is_asked_for() -> None:
    assert refusal("1,5", "2", commas=True) == ([True, False], "has a decimal comma", "say --decimal comma")
    assert numbers("1,5", decimal="comma", commas=True) == [1.5]


@pytest.mark.parametrize(
    ("cells", "wrong", "problem", "remedy"),
    [
        (("1", "four", "5", "six"), [1, 3], "is not a number", "write digits such as 4.5, or leave the row out"),
        (("1,5", "2,5", "four"), [2], "is not a number", "write digits such as 4.5, or leave the row out"),
        (("1,5", "2.5", "3.5"), [0], "is not a number", "write digits such as 4.5, or leave the row out"),
        (("12 %", "5"), [0], "has the sign %", "write numbers without %"),
        (("20 °C", "68 °F", "21 °C"), [1], "has the unit °F, while most have °C", "write numbers in °C"),
        (("5 kB", "3 W", "3 W"), [0], "has the unit kB, while most have W", "write numbers in W"),
        (("4/5", "3/5", "80 %"), [2], "has the unit %, while most have /5", "write numbers in /5"),
        (("☆☆☆", "☆"), [0, 1], "is not a number", "write digits such as 4.5, or leave the row out"),
        (("5 kB", "3"), [0], "has the unit kB", "write numbers without kB"),
        (("5", "€7", "x"), [1, 2], "has the sign €", "write numbers without €"),
        (("1", "-inf"), [1], "is an infinite number", "leave the row out"),
        (("Infinity", "x"), [0, 1], "is an infinite number", "leave the row out"),
        (("1", "1e999"), [1], "is too large a number", "leave the row out"),
        (("1_000",), [0], "is not a number", "write digits such as 4.5, or leave the row out"),
        (("12,34,567", "1"), [0], "is not a number", "write digits such as 4.5, or leave the row out"),
        (("0x10",), [0], "is not a number", "write digits such as 4.5, or leave the row out"),
    ],
)
def test_what_is_no_number(cells: tuple[str, ...], wrong: list[int], problem: str, remedy: str) -> None:
    assert refusal(*cells) == ([k in wrong for k in range(len(cells))], problem, remedy)


def test_numbers_and_texts_of_other_types() -> None:
    """As they stand in Parquet; a column of floats that are all whole was one of whole numbers with a gap."""
    assert to_numbers(pyarrow.array([2**53 + 1, None]), "auto", False).to_pylist() == [2.0**53, None]
    assert to_numbers(pyarrow.array([0.1, float("nan")], from_pandas=False), "auto", False).to_pylist() == [0.1, None]
    assert to_numbers(pyarrow.array([0.1], pyarrow.float32()), "auto", False).to_pylist() == [0.1]
    assert to_text(pyarrow.array([1.0, None, 3.0])).to_pylist() == ["1", None, "3"]
    assert to_text(pyarrow.array([1.5, 3.0])).to_pylist() == ["1.5", "3"]
    assert to_text(pyarrow.array([" a ", "", "\t"])).to_pylist() == ["a", None, None]
    assert to_text(pyarrow.array(["a", "b", "a"]).dictionary_encode()).to_pylist() == ["a", "b", "a"]
    assert to_text(pyarrow.array([["a", "b"], [1 and "c"], None])).to_pylist() == ["a,b", "c", None]
    for column in (pyarrow.array([{"a": 1}]), pyarrow.array([["a,b"]]), pyarrow.array([b"\xff"])):
        with pytest.raises(CellError, match="is of type"):
            to_text(column)


def test_codes_of_several_columns_become_codes_of_all_their_names() -> None:
    columns = [["b", "a", None, "b"], ["c", "a"], []]
    parts = [to_codes(pyarrow.array(column, pyarrow.string())) for column in columns]
    assert [(part.tolist(), names) for part, names in parts] == [
        ([0, 1, -1, 0], ["b", "a"]),
        ([0, 1], ["c", "a"]),
        ([], []),
    ]
    index = index_names([names for _, names in parts])
    assert index == {"b": 0, "a": 1, "c": 2}
    assert [recode(part, names, index).tolist() for part, names in parts] == [[0, 1, -1, 0], [2, 1], []]


def test_one_number_a_row_orders_rows_as_their_columns_do() -> None:
    rng = np.random.default_rng(0)
    columns = rng.integers(-1, 4, (3, 200)) * np.array([[1], [2**40], [2**60]])
    keys = combine_codes(*columns)
    rows = columns.T
    np.testing.assert_array_equal(
        np.unique(rows, axis=0), rows[np.unique(keys, return_index=True)[1]], "beyond 64 bits, too"
    )
    np.testing.assert_array_equal(sort_unique(keys), np.unique(keys))
    assert combine_codes(np.zeros(0, np.int64)).tolist() == sort_unique(np.zeros(0, np.int64)).tolist() == []


def test_a_table_that_others_could_read_is_the_owner_s_only_and_new(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("something, and longer than what follows")
    path.chmod(0o644)

    def rows() -> Iterator[tuple[str | int, ...]]:
        assert path.stat().st_mode & 0o777 == 0o600, "before the first row"
        yield "a", 1, "x, y"

    write_private_csv(path, ("name", "number", "text"), rows())
    assert path.read_bytes() == b'name,number,text\na,1,"x, y"\n'
