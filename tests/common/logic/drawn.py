"""Hypothesis strategies of formulas and traces; bounds and readings lie on a coarse grid, which makes ties common."""

from collections.abc import Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor

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
    Relation,
    Until,
    Variable,
)
from common.logic.plan import CAP
from common.logic.projection import Teacher

RELATIONS: tuple[Relation, ...] = ("<=", ">=", "<", ">")


def closest(phi: Formula, readings: Tensor, names: Sequence[str], cap: int = CAP) -> Tensor:
    """Return the closest traces that satisfy φ, B x T x D."""
    return Teacher.of(phi, names, readings.shape[-2], cap)(readings)


def atoms(names: tuple[str, ...] = ("x",), bounds: tuple[float, ...] = (-1.0, 0.0, 1.0)) -> st.SearchStrategy[Atom]:
    """Return atoms over one variable each."""
    variables = st.sampled_from(names).map(Variable)
    return st.builds(Atom, variables, st.sampled_from(RELATIONS), st.sampled_from(bounds))


def linear_atoms() -> st.SearchStrategy[Atom]:
    """Return atoms over sums of x, y and a name that needs quotes, with any finite bound."""
    factors = st.floats(-100, 100, allow_subnormal=False).filter(bool)
    names = st.lists(st.sampled_from(["x", "y_1", "traffic volume"]), min_size=1, max_size=3, unique=True)
    expressions = names.flatmap(
        lambda chosen: st.lists(factors, min_size=len(chosen), max_size=len(chosen)).map(
            lambda cs: Linear(tuple(zip(chosen, cs, strict=True)))
        )
    )
    bounds = st.floats(allow_nan=False, allow_infinity=False)
    return st.builds(Atom, expressions, st.sampled_from(RELATIONS), bounds)


def formulas(leaves: st.SearchStrategy[Atom], longest: int = 2, size: int = 4) -> st.SearchStrategy[Formula]:
    """Return formulas of all operators over the leaves, windows within [0, longest]."""
    ends = st.tuples(st.integers(0, longest), st.integers(0, longest))
    windows = ends.map(lambda pair: (min(pair), max(pair)))

    def grown(parts: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            parts.map(Not),
            several.map(And),
            several.map(Or),
            st.builds(Implies, parts, parts),
            st.builds(lambda w, p: Always(w[0], w[1], p), windows, parts),
            st.builds(lambda w, p: Eventually(w[0], w[1], p), windows, parts),
            st.builds(lambda w, p, q: Until(w[0], w[1], p, q), windows, parts, parts),
        )

    return st.recursive(leaves, grown, max_leaves=size)


def traces(batch: int, length: int, variables: int) -> st.SearchStrategy[Tensor]:
    """Return B x T x D readings, float64, on a grid of halves."""
    count = batch * length * variables
    drawn = st.lists(st.integers(-4, 4), min_size=count, max_size=count)
    return drawn.map(lambda v: torch.tensor(v, dtype=torch.float64).reshape(batch, length, variables) / 2)
