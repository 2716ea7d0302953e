"""Robustness and truth, against rtamt, against the Boolean definition, and by hand."""

from importlib.util import find_spec

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Not, Or, Until, Variable, horizon
from common.logic.semantics import robustness, satisfied, sliding_maximum, sliding_minimum
from tests.common.logic.drawn import atoms, formulas, traces

NAMES = ("x", "y")
x, y = Variable("x"), Variable("y")
Readings = dict[str, list[float]]


def obeys(phi: Formula, trace: Readings, t: int) -> bool:
    """Return the truth value by the Boolean definition of §3.1."""
    match phi:
        case Atom(expression, relation, bound):
            value = sum(factor * trace[name][t] for name, factor in expression.terms)
            return {"<=": value <= bound, ">=": value >= bound, "<": value < bound, ">": value > bound}[relation]
        case Not(part):
            return not obeys(part, trace, t)
        case And(parts):
            return all(obeys(part, trace, t) for part in parts)
        case Or(parts):
            return any(obeys(part, trace, t) for part in parts)
        case Implies(left, right):
            return not obeys(left, trace, t) or obeys(right, trace, t)
        case Always(a, b, part):
            return all(obeys(part, trace, k) for k in range(t + a, t + b + 1))
        case Eventually(a, b, part):
            return any(obeys(part, trace, k) for k in range(t + a, t + b + 1))
        case Until(a, b, left, right):
            return any(
                obeys(right, trace, k) and all(obeys(left, trace, i) for i in range(t, k + 1))
                for k in range(t + a, t + b + 1)
            )


@pytest.mark.skipif(find_spec("rtamt") is None, reason="rtamt is for Python below 3.13, as pyproject.toml says")
@given(st.data(), formulas(atoms(NAMES) | st.sampled_from([x - y > 0.5, 2 * x + y <= 1]), longest=3, size=6))
def test_robustness_equals_that_of_rtamt_at_every_time(data: st.DataObject, phi: Formula) -> None:
    from studies.speed.stl_robustness import Oracle, trace_lists

    drawn = data.draw(traces(2, horizon(phi) + 3, 2))
    drawn = drawn + torch.randn(drawn.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, oracle = torch.stack([robustness(phi, drawn, NAMES, t) for t in range(3)], -1), Oracle.of(phi)
    theirs = [oracle.signal(trace)[:3] for trace in trace_lists(drawn)]
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64), rtol=0, atol=1e-9)


@given(st.data(), formulas(atoms(NAMES), longest=3, size=6))
def test_truth_equals_the_definition_and_the_sign_of_robustness(data: st.DataObject, phi: Formula) -> None:
    drawn = data.draw(traces(3, horizon(phi) + 2, 2))
    truth, rho = satisfied(phi, drawn, NAMES, 1), robustness(phi, drawn, NAMES, 1)
    assert truth.tolist() == [obeys(phi, {"x": trace[:, 0].tolist(), "y": trace[:, 1].tolist()}, 1) for trace in drawn]
    assert torch.equal(truth[rho != 0], rho[rho != 0] > 0)


def test_until_requires_its_first_part_on_the_closed_window() -> None:
    trace = torch.tensor([[[0.0], [0.0], [5.0]]])
    assert robustness(Until(0, 2, x < 3, x > 4), trace, ["x"]).tolist() == [-2]
    assert not satisfied(Until(0, 2, x < 3, x > 4), trace, ["x"]).item()
    assert satisfied(Until(0, 2, x < 6, x > 4), trace, ["x"]).item()


def test_the_gradient_passes_to_the_reading_that_decides() -> None:
    trace = torch.tensor([[[1.0], [3.0], [2.0]], [[5.0], [0.0], [4.0]]], requires_grad=True)
    (gradient,) = torch.autograd.grad(robustness(Always(0, 2, x <= 2.5), trace, ["x"]).sum(), trace)
    assert gradient.squeeze(-1).tolist() == [[0, -1, 0], [-1, 0, 0]]


@given(st.data(), st.integers(1, 12), st.integers(1, 12))
def test_sliding_windows_equal_unfold(data: st.DataObject, length: int, width: int) -> None:
    values = data.draw(traces(2, length + width, 1)).squeeze(-1)
    assert torch.equal(sliding_minimum(values, width), values.unfold(-1, width, 1).amin(-1))
    assert torch.equal(sliding_maximum(values, width), values.unfold(-1, width, 1).amax(-1))


def test_bounds_are_compared_in_the_traces_own_precision() -> None:
    single = torch.full((1, 1, 1), 0.1)
    assert satisfied(x <= 0.1, single, ["x"]).item()
    assert robustness(x <= 0.1, single, ["x"]).item() == 0


def test_the_error_of_a_short_trace_names_both_lengths() -> None:
    phi = Always(0, 5, Eventually(0, 3, x > 1))
    for call in (robustness, satisfied):
        with pytest.raises(DataError, match="needs 9 steps, the trace has 8"):
            call(phi, torch.zeros(2, 8, 1), ["x"])
    with pytest.raises(DataError, match="needs 10 steps, the trace has 9"):
        robustness(phi, torch.zeros(2, 9, 1), ["x"], t=1)


def test_other_shapes_and_variables_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape 3 x 4 x 1; expected B x T x D with D = 2 variables"):
        robustness(x > 1, torch.zeros(3, 4, 1), NAMES)
    with pytest.raises(DataError, match="lack the variable 'y'; they have: x"):
        satisfied(y > 1, torch.zeros(3, 4, 1), ["x"])
