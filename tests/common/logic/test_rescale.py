"""Formulas in standard deviations hold as they do in the data's units."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from common.logic.formula import Atom, Formula, Linear, horizon, rescaled
from common.logic.projection import Teacher
from common.logic.semantics import robustness
from tests.common.logic.drawn import atoms, formulas

NAMES = ("x", "y")
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
