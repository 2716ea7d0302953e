"""Formulas as values: normal form, and standard deviations in place of the data's units."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from common.errors import ConfigError
from common.logic.formula import (
    Always,
    And,
    Atom,
    Eventually,
    Formula,
    Implies,
    Linear,
    Not,
    Or,
    Until,
    Variable,
    conjunction,
    horizon,
    operands,
    rescaled,
)
from common.logic.plan import normal_form
from common.logic.projection import Teacher
from common.logic.semantics import robustness, satisfied
from tests.common.logic.drawn import atoms, formulas, traces

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


NAMES = ("x", "y")


def nodes(phi: Formula) -> Iterator[Formula]:
    yield phi
    for operand in operands(phi):
        yield from nodes(operand)


@given(st.data(), formulas(atoms(NAMES), longest=3, size=5))
def test_truth_and_robustness_are_unchanged_without_negations(data: st.DataObject, phi: Formula) -> None:
    normal = normal_form(phi)
    assert not any(isinstance(node, Not | Implies) for node in nodes(normal))
    assert horizon(normal) == horizon(phi)
    drawn: Tensor = data.draw(traces(3, horizon(phi) + 1, 2))
    torch.testing.assert_close(robustness(normal, drawn, NAMES), robustness(phi, drawn, NAMES), rtol=0, atol=0)
    assert torch.equal(satisfied(normal, drawn, NAMES), satisfied(phi, drawn, NAMES))


def test_a_normal_formula_is_unchanged() -> None:
    phi = Always(0, 2, Or((Variable("x") < 1, Until(0, 1, Variable("x") < 2, Variable("y") >= 3))))
    assert normal_form(phi) == phi


MEAN, STD = {"x": 310.5, "y": -0.25}, {"x": 42.0, "y": 0.125}
SUMS = st.builds(lambda a, b, c: Atom(Linear((("x", a), ("y", b))), "<=", c), *[st.sampled_from([-2.0, 0.5, 3.0])] * 3)


def on_scale(x: Tensor) -> Tensor:
    mean, std = (torch.tensor([of[name] for name in NAMES], dtype=torch.float64) for of in (MEAN, STD))
    return (x - mean) / std


@given(formulas(st.one_of(atoms(NAMES), SUMS), longest=2, size=4))
@settings(max_examples=200, deadline=None)
def test_robustness_is_unchanged(phi: Formula) -> None:
    steps = horizon(phi) + 1
    x = torch.randint(-4, 4, (3, steps, 2), generator=torch.Generator().manual_seed(steps)).double() / 2
    expected = robustness(phi, x, NAMES)
    torch.testing.assert_close(robustness(rescaled(phi, MEAN, STD), on_scale(x), NAMES), expected, atol=1e-9, rtol=1e-9)


def test_a_single_variable_moves_as_in_the_data_s_units() -> None:
    phi = (Linear((("x", 1.0),)) <= 300.0) & (Linear((("y", 1.0),)) >= 0.0)
    x = torch.tensor([[[350.0, -0.5]]], dtype=torch.float64)
    moved = Teacher.of(rescaled(phi, MEAN, STD), NAMES, 1)(on_scale(x))
    torch.testing.assert_close(moved, on_scale(Teacher.of(phi, NAMES, 1)(x)), atol=1e-12, rtol=0)
