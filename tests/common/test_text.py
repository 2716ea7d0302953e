"""Texts of quantities, and texts of others made printable."""

import pytest

from common.text import count, printable


@pytest.mark.parametrize(("number", "text"), [(0, "0 clients"), (1, "1 client"), (1200, "1,200 clients")])
def test_a_quantity_with_its_noun(number: int, text: str) -> None:
    assert count(number, "client") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é ρ", "plain é ρ"),
        ("a\x1b[31mred\x1b[0m", "a�red�"),
        ("x\x1b]0;title\x07y", "x�y"),
        ("a\r\nb\tc\xa0d", "a  b c d"),
        ("\u202eevil\x00\ud800", "�evil��"),
        ("\x1b", "�"),
        ("", ""),
    ],
)
def test_control_characters_and_escape_sequences_are_replaced(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_long_text_is_cut() -> None:
    assert printable("y" * 300) == "y" * 300
    assert printable("y" * 301) == "y" * 299 + "…"
    assert len(printable("\x1b]0;" + "z" * 10**6)) <= 300
    assert printable("abcdef", 4) == "abc…"
