"""Tight parameters: they hold, nothing tighter does, and they equal those by hand or by brute force."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given
from torch import Tensor

from common.errors import DataError
from common.logic import inference
from common.logic.formula import STRICT
from common.logic.inference import Property, smallest_cover, windows
from common.logic.semantics import satisfied
from common.tasks.traffic.properties import WEAKER_DOWN, WEAKER_UP, pool_parameters
from tests.common.logic.drawn import traces

NAMES = ("x", "y")
OVER = windows(6, 2)
Infer = Callable[[Tensor, Tensor], Property]

INFERRED: dict[str, Infer] = {
    "1": lambda x, y: inference.infer_operational_range(x, OVER, "x"),
    "1 overlapping": lambda x, y: inference.infer_operational_range(x, windows(6, 3, 1), "x"),
    "2": lambda x, y: inference.infer_existence(x, OVER, "x"),
    "3": lambda x, y: inference.infer_until(x, OVER, "x"),
    "3 wide": lambda x, y: inference.infer_until(x, windows(6, 3), "x"),
    "4": lambda x, y: inference.infer_intra_task(x, y, OVER, "x", "y"),
    "5": lambda x, y: inference.infer_implication(x, (0, 3), (1, 2), "x"),
    "6": lambda x, y: inference.infer_nested(x, y, (0, 3), (0, 2), "x", "y"),
    "7": lambda x, y: inference.infer_eventualities(x, OVER, "x"),
}
SLACK = {"3": STRICT, "3 wide": STRICT, "4": STRICT}


def both(readings: Tensor) -> tuple[Tensor, Tensor]:
    """Return … x T x 2 as x and y."""
    return readings[..., 0], readings[..., 1]


@pytest.mark.parametrize("name", INFERRED)
@given(readings=traces(4, 6, 2))
def test_the_inferred_property_holds_and_nothing_tighter_does(name: str, readings: Tensor) -> None:
    inferred = INFERRED[name](*both(readings))
    if inferred.vacuous:
        return
    assert satisfied(inferred.formula(), readings, NAMES).all()
    step = SLACK.get(name, 0.0) + 1e-6
    assert {*inferred.parameters} <= {*WEAKER_UP, *WEAKER_DOWN}
    for parameter in inferred.parameters.keys() - {"trigger"}:
        for w in range(len(inferred.parameters[parameter])):
            tighter = inferred.parameters[parameter].clone()
            tighter[w] += step if parameter in WEAKER_DOWN else -step
            changed = replace(inferred, parameters={**inferred.parameters, parameter: tighter})
            assert not satisfied(changed.formula(), readings, NAMES).all()


@pytest.mark.parametrize("name", INFERRED)
def test_clients_in_a_batch_equal_single_clients(name: str) -> None:
    readings = torch.randn(3, 5, 6, 2, generator=torch.Generator().manual_seed(1))
    together = INFERRED[name](*both(readings))
    assert together.vacuous.shape == (3,)
    for client in range(3):
        assert together[client].formula() == INFERRED[name](*both(readings[client])).formula()


@pytest.mark.parametrize("name", INFERRED)
def test_the_inferred_property_holds_in_single_precision_and_large_units(name: str) -> None:
    readings = 30_000 + 1e4 * torch.randn(40, 6, 2, generator=torch.Generator().manual_seed(2))
    assert satisfied(INFERRED[name](*both(readings)).formula(), readings, NAMES).all()


def pool(members: Property) -> Property:
    """Return the property with the weakest of every parameter, as clusters pool it."""
    values = {name: a.numpy() for name, a in members.parameters.items()}
    pooled = pool_parameters([{n: a[k] for n, a in values.items()} for k in range(len(members.vacuous))])
    return replace(members, parameters={name: torch.from_numpy(pooled[name]) for name in values})


@pytest.mark.parametrize("name", INFERRED)
@given(readings=traces(6, 6, 2))
def test_the_pooled_property_holds_for_every_member(name: str, readings: Tensor) -> None:
    members = readings.reshape(3, 2, 6, 2)
    pooled = pool(INFERRED[name](*both(members)))
    if not pooled.vacuous:
        assert satisfied(pooled.formula(), readings, NAMES).all()
    if name[0] in "147":
        assert pooled.formula() == INFERRED[name](*both(readings)).formula()


@given(traces(1, 3, 3))
def test_the_shortest_cover_equals_brute_force(values: Tensor) -> None:
    rows = values[0]
    covers = [
        (float(a - b), float(b), float(a))
        for b, a in product(rows.flatten(), repeat=2)
        if ((rows >= b) & (rows <= a)).any(-1).all()
    ]
    _, lower, upper = min(covers)
    b, a = smallest_cover(rows)
    assert (b.item(), a.item()) == (lower, upper)


def test_covers_are_computed_in_pieces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(7, 4, 3, generator=torch.Generator().manual_seed(3))
    whole = smallest_cover(values)
    monkeypatch.setattr(inference, "CHUNK", 100)
    assert all(torch.equal(a, b) for a, b in zip(whole, smallest_cover(values), strict=True))


def test_parameters_by_hand() -> None:
    x = torch.tensor([[1.0, 5, 2, 8], [3, 4, 9, 0]], dtype=torch.float64)
    over = windows(4, 2)
    ranges = inference.infer_operational_range(x, over, "x").parameters
    assert (ranges["upper"].tolist(), ranges["lower"].tolist()) == ([5, 9], [1, 0])
    assert inference.infer_eventualities(x, over, "x").parameters["bound"].tolist() == [4, 8]
    met = inference.infer_existence(x, over, "x").parameters
    assert (met["lower"].tolist(), met["upper"].tolist()) == ([4, 8], [5, 9])
    held = inference.infer_until(x, over, "x").parameters
    # window 0 dips to 1 and 3, so b = 3; both do so at once, so a = 3. window 1: 2 at once, and 0 after 9.
    torch.testing.assert_close(held["met"], torch.tensor([3.0, 2], dtype=torch.float64) + STRICT, rtol=0, atol=1e-12)
    torch.testing.assert_close(held["held"], torch.tensor([3.0, 9], dtype=torch.float64) + STRICT, rtol=0, atol=1e-12)
    answer = inference.infer_implication(x, (0, 2), (1, 1), "x", level=0.6).parameters
    # 5 of the 8 readings are <= 4: triggered by 5, 4 and 9 within the span, followed by 2, 9 and 0.
    assert (answer["trigger"].tolist(), answer["response"].tolist()) == ([4], [0])


def test_a_property_whose_trigger_never_occurs_is_vacuous() -> None:
    x = torch.tensor([[0.0, 0, 0, 9], [0, 0, 0, 8]])
    implication = inference.infer_implication(x, (0, 2), (1, 1), "x", level=1.0)
    assert implication.vacuous.item()
    with pytest.raises(DataError, match=r"vacuous: 'x' never reaches .* between steps 0 and 2"):
        implication.formula()


def test_a_vacuous_member_leaves_the_pooled_property_unchanged() -> None:
    x = torch.tensor([[[0.0, 0, 0, 9]], [[9.0, 7, 0, 0]]])
    implication = inference.infer_implication(x, (0, 2), (1, 1), "x", level=1.0)
    assert implication.vacuous.tolist() == [True, False]
    assert str(pool(implication).formula()) == "G[0,2] (x >= 9 -> F[1,1] (x >= 7))"


def test_several_clients_have_no_single_formula() -> None:
    with pytest.raises(DataError, match=r"property\[client\]"):
        inference.infer_eventualities(torch.zeros(3, 2, 4), windows(4, 2), "x").formula()


def test_short_or_empty_series_are_refused() -> None:
    with pytest.raises(DataError, match=r"window \[2,4\] is not within the 4 steps"):
        inference.infer_operational_range(torch.zeros(3, 4), [(2, 4)], "x")
    with pytest.raises(DataError, match="not within the 4 steps"):
        inference.infer_nested(torch.zeros(3, 4), torch.zeros(3, 4), (0, 2), (1, 2), "x", "y")
    with pytest.raises(DataError, match="at least one of each"):
        inference.infer_eventualities(torch.zeros(0, 4), [(0, 1)], "x")
