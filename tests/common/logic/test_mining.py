"""Templates, and mining over all of them."""

import math

import pytest
import torch
from torch import Tensor

from common.errors import ConfigError, DataError
from common.logic import inference as templates
from common.logic.formula import Formula
from common.logic.inference import Window, windows
from common.logic.mining import mine
from common.logic.semantics import satisfied

NAMES = ("volume", "occupancy")


def days(count: int) -> Tensor:
    """Occupancy follows volume two hours later."""
    noise = torch.randn(2, count, 24, generator=torch.Generator().manual_seed(0))
    volume = 100 + 50 * torch.sin(torch.arange(24) / 24 * 2 * math.pi) + 5 * noise[0]
    return torch.stack([volume, volume.roll(2, 1) / 2 + noise[1]], -1)


def test_every_mined_property_holds_and_the_tightest_is_first() -> None:
    readings = days(60)
    properties = mine(readings, NAMES)
    assert {mined.template for mined in properties} == {1, 2, 3, 4, 5, 6, 7}
    assert all(satisfied(mined.formula, readings, NAMES).all() for mined in properties)
    slacks = [mined.slack for mined in properties]
    assert slacks == sorted(slacks)
    assert min(slacks) >= 0


def test_mining_returns_the_delay_of_two_hours() -> None:
    best = next(mined for mined in mine(days(60), NAMES, widths=(1, 2)) if mined.template == 6)
    assert (best.width, str(best.formula)[:20]) == (2, "G[0,21] (volume >= 1")


def test_the_slack_of_a_range_is_half_its_width_in_deviations() -> None:
    readings = torch.tensor([[0.0, 4], [2.0, 6]], dtype=torch.float64)[..., None]
    best = next(mined for mined in mine(readings, ("x",), widths=(1,)) if mined.template == 1)
    assert best.slack == pytest.approx(1 / math.sqrt(5))  # readings 0, 4, 2, 6: variance 5


def test_constant_variables_and_unconditional_responses_are_omitted() -> None:
    readings = torch.stack([torch.full((3, 24), 7.0), days(3)[..., 0]], -1)
    properties = mine(readings, ("constant", "volume"))
    assert {mined.template for mined in properties} <= {1, 2, 3, 5, 7}
    assert not any("constant" in str(mined.formula) for mined in properties)
    always = torch.ones(4, 6, 2, dtype=torch.float64)
    always[..., 0] = torch.arange(6)
    always[:, ::2, 1] = 2  # every second reading: the response follows with or without a trigger
    assert 6 not in {mined.template for mined in mine(always, ("x", "y"), widths=(2,)) if "x >=" in str(mined.formula)}


def test_other_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="S x T x 1"):
        mine(torch.zeros(3, 4), ("x",))


def test_fhwas_twelve_windows() -> None:
    assert windows(24, 2) == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), *((i, i + 1) for i in range(12, 24, 2)))


def test_windows_cut_short_or_overlap() -> None:
    assert windows(5, 2) == ((0, 1), (2, 3), (4, 4))
    assert windows(4, 2, 1) == ((0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize(("length", "width", "stride"), [(3, 4, 0), (3, 0, 0), (0, 1, 0), (3, 1, -1)])
def test_windows_that_do_not_fit_are_refused(length: int, width: int, stride: int) -> None:
    with pytest.raises(ConfigError, match="do not fit"):
        windows(length, width, stride)


OVER: tuple[Window, ...] = ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("phi", "text"),
    [
        (templates.operational_range("x", OVER, [3, 4], [1, 2]), "G[0,1] (x <= 3 & x >= 1) & G[2,3] (x <= 4 & x >= 2)"),
        (templates.existence("x", OVER, [3, 4], [1, 2]), "F[0,1] (x <= 3 & x >= 1) & F[2,3] (x <= 4 & x >= 2)"),
        (
            templates.until("x", OVER, [3, 4], [1, 2]),
            "G[0,0] ((x < 3) U[0,1] (x < 1)) & G[2,2] ((x < 4) U[0,1] (x < 2))",
        ),
        (templates.intra_task("x", "y", OVER, [3, 4]), "G[0,1] (x - y > 3) & G[2,3] (x - y > 4)"),
        (templates.nested("x", "x", (0, 5), (1, 2), 3, 4), "G[0,5] (x >= 3 -> F[1,2] (x >= 4))"),
        (templates.nested("x", "y", (0, 5), (1, 2), 3, 4), "G[0,5] (x >= 3 -> F[1,2] (y >= 4))"),
        (templates.eventualities("x", OVER, [3, 4]), "F[0,1] (x >= 3) & F[2,3] (x >= 4)"),
        (templates.eventualities("x", OVER[:1], [3]), "F[0,1] (x >= 3)"),
    ],
)
def test_each_template_equals_table_1(phi: Formula, text: str) -> None:
    assert str(phi) == text
