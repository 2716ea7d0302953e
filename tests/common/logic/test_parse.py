"""Parser: text to formulas and back."""

import pytest
from hypothesis import given

from common.errors import ConfigError
from common.logic.formula import Always, And, Eventually, Formula, Implies, Not, Or, Until, Variable
from common.logic.parser import parse
from tests.common.logic.drawn import formulas, linear_atoms

x, y = Variable("x"), Variable("y")


@given(formulas(linear_atoms(), longest=30, size=8))
def test_parse_undoes_print(phi: Formula) -> None:
    assert parse(str(phi)) == phi
    assert str(parse(str(phi))) == str(phi)


@pytest.mark.parametrize(
    ("text", "phi"),
    [
        ("G[0,1] (volume <= 310.5)", Always(0, 1, Variable("volume") <= 310.5)),
        ("G[0,1]volume<=310.5", Always(0, 1, Variable("volume") <= 310.5)),
        ("x<1&y<1|x>2->y>=3", Implies(Or((And((x < 1, y < 1)), x > 2)), y >= 3)),
        ("x < 1 -> x < 2 -> x < 3", Implies(x < 1, Implies(x < 2, x < 3))),
        ("!F [ 0 , 2 ] x - 2*y > -1.5e1", Not(Eventually(0, 2, x - 2 * y > -15))),
        ("x < 1 U[0,1] y < 1", Until(0, 1, x < 1, y < 1)),
        ("G < 1 & U > 2", And((Variable("G") < 1, Variable("U") > 2))),
    ],
)
def test_other_spellings(text: str, phi: Formula) -> None:
    assert parse(text) == phi


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("G[0,1] (x <= )", 14, "expected 'number', found"),
        ("G[0,1] (x <= 1", 15, "expected '\\)', found 'end'"),
        ("x <= 1 x", 8, "expected 'end', found 'x'"),
        ("x $ 3", 3, "'\\$' is not part of a formula"),
        ("x", 2, "expected <=, >=, < or >, found 'end'"),
        ("", 1, "expected 'name', found 'end'"),
        ("x < 1 & F[3,2] (x < 1)", 9, "0 <= a <= b"),
        ("x < 1 & y - y < 1", 9, "name each variable once"),
        ("x < 1e999", 1, "finite"),
    ],
)
def test_errors_name_the_column(text: str, column: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"column {column}: .*{problem}.*looks like"):
        parse(text)
