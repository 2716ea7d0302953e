"""Teacher against brute force, and its guarantees."""

from itertools import product

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from common.errors import ConfigError, DataError
from common.logic import inference
from common.logic.formula import Always, Eventually, Formula, Implies, Or, Until, Variable, horizon
from common.logic.inference import windows
from common.logic.plan import Interval
from common.logic.projection import Bounds, Teacher, clamp, property_loss, separate
from common.logic.semantics import robustness, satisfied
from tests.common.logic.drawn import atoms, closest, formulas, traces

x, y = Variable("x"), Variable("y")

NAMES = ("x", "y")

LARGE: dict[str, Formula] = {
    "1": inference.operational_range("x", windows(24, 2), [1.0] * 12, [-1.0] * 12),
    "2": inference.existence("x", windows(24, 2), [0.5] * 12, [-0.5] * 12),
    "2 overlapping": inference.existence("x", windows(24, 2, 1), [0.5] * 23, [-0.5] * 23),
    "3": inference.until("x", windows(24, 2), [1.0] * 12, [0.0] * 12),
    "4": inference.intra_task("x", "y", windows(24, 2), [-0.3] * 12),
    "5": inference.nested("x", "x", (0, 18), (1, 5), 0.7, 1.5),
    "5 weaker response": inference.nested("x", "x", (0, 18), (1, 5), 1.5, 0.7),
    "6": inference.nested("x", "y", (0, 18), (0, 5), 0.7, 1.5),
    "7": inference.eventualities("x", windows(24, 2), [0.5] * 12),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LARGE)
def test_all_traces_satisfy_and_satisfying_traces_are_unchanged(name: str, dtype: torch.dtype) -> None:
    readings = (2 * torch.randn(300, 24, 2, generator=torch.Generator().manual_seed(0))).to(dtype)
    teacher = Teacher.of(LARGE[name], NAMES, 24)
    corrected = teacher(readings)
    assert satisfied(LARGE[name], corrected, NAMES).all()
    assert (robustness(LARGE[name], corrected, NAMES) >= 0).all()
    assert torch.equal(teacher(corrected), corrected)
    obeyed = satisfied(LARGE[name], readings, NAMES)
    assert torch.equal((corrected == readings).all(-1).all(-1), obeyed)


@pytest.mark.parametrize("name", ["3", "4", "6"])
def test_large_units_in_single_precision(name: str) -> None:
    readings = 20_000 * torch.randn(1000, 24, 2, generator=torch.Generator().manual_seed(1))
    teacher = Teacher.of(LARGE[name], NAMES, 24)
    corrected = teacher(readings)
    assert satisfied(LARGE[name], corrected, NAMES).all()
    assert torch.equal(teacher(corrected), corrected)


def test_a_difference_is_satisfied_at_the_cost_of_its_gap() -> None:
    phi = inference.intra_task("x", "y", [(0, 1)], [1.0])
    readings = torch.tensor([[[0.0, 2.0], [3.0, 1.0]]], dtype=torch.float64)
    torch.testing.assert_close(
        closest(phi, readings, NAMES), torch.tensor([[[1.5, 0.5], [3, 1]]], dtype=torch.float64), rtol=0, atol=1e-6
    )


def test_both_ways_of_writing_a_difference_are_one_axis() -> None:
    phi = Always(0, 0, (x - y <= 1) & (y - x <= 1) & (2 * y - 2 * x <= 5))
    with pytest.raises(ConfigError, match=r"bound at step 0 through 'x - y' and '-2\*y [+] 2\*x'"):
        closest(phi, torch.zeros(1, 1, 2), NAMES)
    corrected = closest((x - y <= 1) & (y - x <= 1), torch.tensor([[[5.0, 0.0]], [[0.0, 5.0]]]), NAMES)
    torch.testing.assert_close(corrected, torch.tensor([[[3.0, 2.0]], [[2.0, 3.0]]]))


def test_choices_among_differences() -> None:
    phi = Eventually(0, 1, x - y >= 1)
    readings = torch.tensor([[[0.0, 3.0], [0.0, 1.0]]], dtype=torch.float64)
    expected = torch.tensor([[[0.0, 3.0], [1.0, 0.0]]], dtype=torch.float64)
    torch.testing.assert_close(closest(phi, readings, NAMES), expected)


@given(st.data(), st.integers(0, 10**6))
def test_convex_properties_never_increase_the_error_if_the_truth_satisfies_them(data: st.DataObject, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    wide = data.draw(st.floats(0, 2))
    lows = torch.randn(12, generator=draw, dtype=torch.float64)
    ranges = inference.operational_range("x", windows(24, 2), (lows + wide).tolist(), lows.tolist())
    for phi in (ranges, inference.intra_task("x", "y", windows(24, 2), lows.tolist())):
        teacher = Teacher.of(phi, NAMES, 24)
        forecast, drawn = 3 * torch.randn(2, 20, 24, 2, generator=draw, dtype=torch.float64)
        truth = teacher(drawn)
        before, after = ((each - truth).square().sum((1, 2)).sqrt() for each in (forecast, teacher(forecast)))
        assert (after <= before + 1e-9).all()


def test_the_loss_is_zero_exactly_where_the_formula_holds() -> None:
    readings = torch.randn(200, 24, 2, generator=torch.Generator().manual_seed(2))
    for phi in LARGE.values():
        corrected = Teacher.of(phi, NAMES, 24)(readings)
        losses = torch.stack([property_loss(a, b) for a, b in zip(readings, corrected, strict=True)])
        assert torch.equal(losses == 0, satisfied(phi, readings, NAMES))


def test_the_students_gradient() -> None:
    forecast = torch.tensor([[[2.0], [0.5], [-3.0], [1.0]]], requires_grad=True)
    teacher = Teacher.of(inference.operational_range("x", [(0, 3)], [1], [0]), ["x"], 4)
    loss = property_loss(forecast, teacher(forecast))
    assert loss.item() == (1 + 3) / 4
    assert torch.autograd.grad(loss, forecast)[0].flatten().tolist() == [0.25, 0, -0.25, 0]


@pytest.mark.parametrize("name", ["1", "4"])
def test_clients_are_trained_together_under_vmap_and_grad(name: str) -> None:
    teacher = Teacher.of(LARGE[name], NAMES, 24)
    forecasts = 2 * torch.randn(5, 8, 24, 2, generator=torch.Generator().manual_seed(3))

    def loss(forecast: Tensor) -> Tensor:
        return property_loss(forecast, teacher(forecast))

    together = torch.func.vmap(torch.func.grad(loss))(forecasts)
    for client in range(5):
        alone = forecasts[client].clone().requires_grad_()
        torch.testing.assert_close(together[client], torch.autograd.grad(loss(alone), alone)[0])


@pytest.mark.parametrize(
    "phi",
    [
        Always(0, 3, (x <= 1) & (x >= 2)),
        Always(0, 3, (x < 1) & (x >= 1)),
        Always(0, 3, x <= 1) & Eventually(0, 3, x > 1),
        Until(0, 3, x < 1, x > 1),
        Always(0, 2, Implies(x <= 1, x > 5)) & Always(1, 1, x < 1),
    ],
)
def test_contradictions_are_refused(phi: Formula) -> None:
    with pytest.raises(ConfigError, match=r"no trace can satisfy this formula .*lower bounds lie below upper bounds"):
        closest(phi, torch.zeros(1, 4, 1), ["x"])


def test_too_many_alternatives_are_refused() -> None:
    tangled = Or((Always(0, 11, Eventually(0, 1, x > 1)), Always(0, 11, Eventually(0, 1, x < 0))))
    with pytest.raises(ConfigError, match="more than the cap of 16 allows; use shorter or disjoint windows"):
        closest(tangled, torch.zeros(1, 13, 1), ["x"], cap=16)


def test_traces_that_cannot_be_corrected_are_refused() -> None:
    with pytest.raises(DataError, match="needs 4 steps, the trace has 3"):
        Teacher.of(Always(0, 3, x <= 1), ["x"], 3)
    with pytest.raises(DataError, match="lack the variable 'y'"):
        Teacher.of(y <= 1, ["x"], 3)
    with pytest.raises(DataError, match="shape 2 x 4 x 1; this teacher corrects … x 3 x 1"):
        Teacher.of(x <= 1, ["x"], 3)(torch.zeros(2, 4, 1))


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


def test_every_client_has_its_own_box_under_vmap() -> None:
    traces = torch.randn(5, 3, 4, 1, generator=torch.Generator().manual_seed(0))
    lower = torch.linspace(-1, 0, 5)[:, None, None].expand(5, 4, 1)
    mapped = torch.func.vmap(clamp)(traces, lower, lower + 0.5)
    for client in range(5):
        expected = traces[client].clamp(float(lower[client, 0, 0]), float(lower[client, 0, 0] + 0.5))
        torch.testing.assert_close(mapped[client], expected, rtol=0, atol=0)


def test_both_variables_move_by_half() -> None:
    x1, x2 = torch.tensor([1.0, 5.0], dtype=torch.float64), torch.tensor([2.0, 1.0], dtype=torch.float64)
    a, b = separate(x1, x2, torch.tensor(1.0))
    torch.testing.assert_close(a, torch.tensor([2.0, 5.0], dtype=torch.float64), rtol=0, atol=1e-6)
    torch.testing.assert_close(b, torch.tensor([1.0, 1.0], dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_pairs_are_apart_in_single_precision_at_any_scale(scale: float) -> None:
    x1, x2, bound = scale * torch.randn(3, 10_000, generator=torch.Generator().manual_seed(0))
    a, b = separate(x1, x2, bound)
    assert (a - b > bound).all()
    again = separate(a, b, bound)
    assert torch.equal(again[0], a)
    assert torch.equal(again[1], b)


def test_an_open_end_keeps_a_margin_and_values_inside_are_unchanged() -> None:
    bounds = Bounds.of([Interval(0, 1, True, True)] * 4, torch.zeros(1, dtype=torch.float64))
    x = torch.tensor([-1, 1e-9, 1 - 1e-9, 1], dtype=torch.float64)
    assert bounds.project(x).tolist() == [1e-6, 1e-9, 1 - 1e-9, 1 - 1e-6]


def test_an_interval_below_the_resolution_of_single_precision_is_refused() -> None:
    narrow = [Interval(9999.0, 9999.001, True, True)]
    Bounds.of(narrow, torch.zeros(1, dtype=torch.float64))
    with pytest.raises(ConfigError, match="narrower than the margin"):
        Bounds.of(narrow, torch.zeros(1))
