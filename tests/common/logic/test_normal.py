"""Negation normal form."""

from collections.abc import Iterator

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from common.logic.formula import (
    Always,
    Formula,
    Implies,
    Not,
    Or,
    Until,
    Variable,
    horizon,
    operands,
)
from common.logic.plan import normal_form
from common.logic.semantics import robustness, satisfied
from tests.common.logic.drawn import atoms, formulas, traces

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
