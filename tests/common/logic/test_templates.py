"""The seven templates."""

import pytest

from common.errors import ConfigError
from common.logic import inference as templates
from common.logic.formula import Formula
from common.logic.inference import Window, windows


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
