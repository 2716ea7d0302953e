"""Closest points of tensors."""

import pytest
import torch

from common.errors import ConfigError
from common.logic.plan import Interval
from common.logic.projection import Bounds, clamp, separate


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
