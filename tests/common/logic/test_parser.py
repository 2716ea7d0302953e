"""Parser: text to formulas and back, faults with their place, and an upper limit on the work that a formula causes."""

import time

import pytest
from hypothesis import given

from common.errors import ConfigError
from common.logic.formula import Always, And, Eventually, Formula, Implies, Not, Or, Until, Variable
from common.logic.parser import parse, read_formula
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


NAMES = ("volume", "occupancy")

MANY = " & ".join(f"F[{2 * k},{2 * k + 1}] (volume >= {k})" for k in range(10))


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("G[0,5](volume <= 400 & F[6,10](volume >= 900)", 46, "expected '\\)', found 'end'"),
        ("G[0,5](flow <= 400)", 8, "the federation measures volume, occupancy; the formula names 'flow'"),
        ("volume <= 4 & 2*speed - volume <= 1", 17, "names 'speed'"),
        ("G[0,5](volume <= 4) & G[20,24](volume >= 9)", 23, "has 25 steps, but a forecast has 24"),
        ("G[0,5](volume <= 400) & F[3,5](volume >= 900)", 25, "no trace can satisfy"),
        ("volume <= 3 & G[2,3](volume >= 5 & volume <= 4)", 36, "at step 2, volume from 5.0 to 4.0"),
        ("volume <= 3 | volume <= 2 & volume >= 4", 1, None),
        ("volume <= 3 & volume > 3", 15, "no trace can satisfy"),
        ("G[0,1](volume + occupancy <= 3) & volume >= 2", 35, "bound at step 0 through"),
        (f"F[0,1]({MANY})", 1, "more than the cap of 256 allows"),
        ("(" * 60 + "volume <= 1" + ")" * 60, 34, "nested too deeply"),
        ("!" * 200 + "volume <= 1", 99, "nested too deeply"),
        ("volume <= 1 &" * 400 + "volume <= 1", 4001, "has 5,211 characters"),
    ],
)
def test_faults_name_their_column(text: str, column: int, problem: str | None) -> None:
    if problem is None:
        assert read_formula(text, 24, NAMES) == parse(text), "one alternative suffices"
        return
    with pytest.raises(ConfigError, match=f"column {column}: .*{problem}"):
        read_formula(text, 24, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "G[0,1]" * 23 + "volume <= 1",
        "F[0,1]" * 23 + "volume <= 1",
        "G[0,1]F[0,1]" * 11 + "volume <= 1",
        f"F[0,1]({MANY})",
        f"volume <= 0 | ({MANY})",
        " & ".join(f"!((volume <= {k}) U[0,{k}] (volume >= {k + 5}))" for k in range(1, 20)),
    ],
)
def test_a_hostile_formula_costs_little_before_it_is_refused(text: str) -> None:
    begin = time.thread_time()
    with pytest.raises(ConfigError, match="alternatives"):
        read_formula(text, 24, NAMES)
    assert time.thread_time() - begin < 3, "a quiet machine takes half a second"


def test_any_variable_is_accepted_before_the_data_are_known() -> None:
    assert read_formula("G[0,2] (speed <= 3)", 24) == parse("G[0,2] (speed <= 3)")
