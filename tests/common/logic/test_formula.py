"""Formulas as values."""

import pytest

from common.errors import ConfigError
from common.logic.formula import (
    Always,
    And,
    Atom,
    Eventually,
    Implies,
    Linear,
    Not,
    Until,
    Variable,
    conjunction,
    horizon,
)

x, y = Variable("x"), Variable("y")


def test_formulas_are_equal_by_content() -> None:
    assert Always(0, 1, x <= 3) == Always(0, 1, Atom(Linear((("x", 1.0),)), "<=", 3.0))
    assert len({x <= 3, Variable("x") <= 3.0, x < 3}) == 2


def test_expressions_add_up_by_variable() -> None:
    assert (x - 2 * y + x).terms == (("x", 2.0), ("y", -2.0))
    assert (x > y) == (x - y > 0)
    assert (3 >= x) == (x <= 3)  # noqa: SIM300 — the reflected comparison is what is tested


@pytest.mark.parametrize(
    ("phi", "text"),
    [
        (Always(0, 1, Variable("volume") <= 310.5), "G[0,1] (volume <= 310.5)"),
        (Eventually(2, 3, x - y > -7), "F[2,3] (x - y > -7)"),
        (Until(0, 1, x < 1, y >= 1e-6), "(x < 1) U[0,1] (y >= 1e-06)"),
        ((x < 1) & (y < 1) & ~(x > 0), "(x < 1 & y < 1) & !(x > 0)"),
        (Implies(x >= 1, (x < 1) | (y < 1)), "x >= 1 -> (x < 1 | y < 1)"),
        (-2 * Variable("traffic volume") <= 1, '-2*"traffic volume" <= 1'),
    ],
)
def test_text(phi: object, text: str) -> None:
    assert str(phi) == text


def test_horizon_adds_nested_windows() -> None:
    assert horizon(x <= 1) == 0
    assert horizon(Always(0, 3, Implies(x > 1, Eventually(1, 5, y > 1)))) == 8
    assert horizon(Until(1, 2, x < 1, Always(0, 4, x < 1)) & Not(Eventually(3, 3, x < 1))) == 6


@pytest.mark.parametrize(("a", "b"), [(2, 1), (-1, 3), (-2, -1)])
def test_contradictory_windows_are_refused(a: int, b: int) -> None:
    with pytest.raises(ConfigError, match="0 <= a <= b"):
        Always(a, b, x <= 1)
    with pytest.raises(ConfigError, match="0 <= a <= b"):
        Until(a, b, x <= 1, x <= 2)


def test_degenerate_expressions_and_formulas_are_refused() -> None:
    with pytest.raises(ConfigError, match="cancel out"):
        x - x
    with pytest.raises(ConfigError, match="non-finite"):
        Atom(x, "<=", float("nan"))
    with pytest.raises(ConfigError, match="finite number other than 0"):
        0 * x
    with pytest.raises(ConfigError, match="at least two"):
        And((x <= 1,))
    with pytest.raises(ConfigError, match="at least two"):
        conjunction([])
    with pytest.raises(ConfigError, match="quotes"):
        Variable('a"b')
    with pytest.raises(ConfigError, match="name each variable once"):
        Linear((("x", 1.0), ("x", 2.0)))


def test_a_chained_comparison_does_not_lose_its_first_half() -> None:
    with pytest.raises(ConfigError, match="two atoms"):
        0 <= x <= 1  # noqa: B015 — the comparison itself is what raises
