"""Teacher against brute force: no satisfying trace is closer."""

from itertools import product

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from common.errors import ConfigError
from common.logic import inference
from common.logic.formula import Formula, horizon
from common.logic.inference import windows
from common.logic.semantics import satisfied
from tests.common.logic.drawn import atoms, closest, formulas, traces

NAMES = ("x", "y")
BOUNDS = (0.0, 1.0)
OVER = windows(4, 2)
SMALL: dict[str, Formula] = {
    "1": inference.operational_range("x", OVER, [1, 0], [0, -1]),
    "2": inference.existence("x", OVER, [1, 0], [0, -1]),
    "2 overlapping": inference.existence("x", windows(4, 2, 1), [1, 0, 1], [0, -1, 1]),
    "3": inference.until("x", OVER, [1, 1], [0, 0]),
    "3 overlapping": inference.until("x", windows(4, 2, 1), [1, 1, 0], [0, 1, 0]),
    "5": inference.nested("x", "x", (0, 2), (1, 1), 0, 1),
    "5 weaker response": inference.nested("x", "x", (0, 1), (1, 2), 1, 0),
    "5 at once": inference.nested("x", "x", (0, 2), (0, 1), 0, 1),
    "7": inference.eventualities("x", OVER, [1, 0]),
    "7 overlapping": inference.eventualities("x", windows(4, 2, 1), [1, 0, 1]),
}


def least_distances(phi: Formula, readings: Tensor, bounds: tuple[float, ...]) -> Tensor:
    """Return the L1 distance of each trace to φ, B, over all combinations of readings, bounds and both sides of bounds."""
    values = [bound + side for bound in bounds for side in (-1e-6, 0.0, 1e-6)]
    names = NAMES[: readings.shape[-1]]
    distances = []
    for trace in readings:
        options = [[float(reading), *values] for reading in trace.flatten()]
        candidates = torch.tensor(list(product(*options)), dtype=torch.float64).reshape(-1, *trace.shape)
        satisfying = candidates[satisfied(phi, candidates, names)]
        distance = (satisfying - trace).abs().sum((1, 2))
        distances.append(float(distance.min()) if len(satisfying) else torch.inf)
    return torch.tensor(distances, dtype=torch.float64)


def check_against_brute_force(phi: Formula, readings: Tensor, bounds: tuple[float, ...]) -> None:
    least = least_distances(phi, readings, bounds)
    if least.isinf().any():
        with pytest.raises(ConfigError, match="no trace can satisfy"):
            closest(phi, readings, NAMES[: readings.shape[-1]])
        return
    corrected = closest(phi, readings, NAMES[: readings.shape[-1]])
    assert satisfied(phi, corrected, NAMES[: readings.shape[-1]]).all()
    torch.testing.assert_close((corrected - readings).abs().sum((1, 2)), least, rtol=0, atol=1e-9)


@settings(max_examples=60)
@given(st.data(), formulas(atoms(bounds=BOUNDS), longest=2, size=5))
def test_no_satisfying_trace_is_closer(data: st.DataObject, phi: Formula) -> None:
    assume(horizon(phi) <= 3)
    check_against_brute_force(phi, data.draw(traces(3, horizon(phi) + 1, 1)), BOUNDS)


@settings(max_examples=30)
@given(st.data(), formulas(atoms(NAMES, BOUNDS), longest=1, size=5))
def test_no_satisfying_trace_of_two_variables_is_closer(data: st.DataObject, phi: Formula) -> None:
    assume(horizon(phi) <= 1)
    check_against_brute_force(phi, data.draw(traces(3, horizon(phi) + 1, 2)), BOUNDS)


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=8)
@given(readings=traces(3, 4, 1))
def test_templates_against_brute_force(name: str, readings: Tensor) -> None:
    check_against_brute_force(SMALL[name], readings, (-1.0, 0.0, 1.0))


@settings(max_examples=15)
@given(readings=traces(3, 2, 2))
def test_nested_implications_against_brute_force(readings: Tensor) -> None:
    check_against_brute_force(inference.nested("x", "y", (0, 0), (0, 1), 0, 1), readings, BOUNDS)
    check_against_brute_force(inference.nested("x", "y", (0, 1), (0, 0), 1, 0), readings, BOUNDS)
