"""Template-free mining (template 8): every template over a grid of windows, the tightest first (algorithms.md §3.2).

The slack of a property is how far its bounds lie from the readings that they bound, on average over the training traces and in
standard deviations of what is bounded: half the width of a range; the mean of x₁ − x₂, of a window's maximum or of an answer
less its bound; for an until, its goal less the window's minimum.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import torch
from torch import Tensor

from common.errors import DataError
from common.logic import inference
from common.logic.formula import Formula
from common.logic.properties import Property
from common.logic.semantics import sliding_maximum
from common.logic.templates import Window, windows

Template = Literal[1, 2, 3, 4, 5, 6, 7]
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 24)
"""Widths of windows, and longest delays of an answer, that are tried."""


@dataclass(frozen=True)
class Mined:
    """A property that holds on every training trace, the template it comes from, its windows' width, and its slack."""

    template: Template
    width: int
    found: Property
    slack: float

    @property
    def formula(self) -> Formula:
        """The property as a formula."""
        return self.found.formula()


def mine(traces: Tensor, names: Sequence[str], widths: Sequence[int] = WIDTHS, keep: int = 1) -> tuple[Mined, ...]:
    """The `keep` tightest properties of every template and choice of variables: S x T x D -> ranked, least slack first.

    Left out: vacuous properties (an answer whose trigger never comes, or that comes without its trigger just as well) and
    variables that never change. Raises DataError unless the traces are S x T x D.
    """
    if traces.ndim != 3 or traces.shape[-1] != len(names) or 0 in traces.shape:
        raise DataError(f"mining needs S x T x {len(names)} readings, not {' x '.join(map(str, traces.shape))}")
    columns = {name: x for name, x in zip(names, traces.unbind(-1), strict=True) if x.amin() < x.amax()}
    fitting = [width for width in widths if 1 <= width <= traces.shape[1]]
    best: list[Mined] = []
    for name, x in columns.items():
        best += _tightest(keep, fitting, _of_one(name, x))
    for first, second in permutations(columns, 2):
        best += _tightest(keep, fitting, _of_two(first, second, columns[first], columns[second]))
    return tuple(sorted(best, key=lambda mined: mined.slack))


def _tightest(keep: int, widths: list[int], found: Callable[[int], Iterator[Mined]]) -> list[Mined]:
    ranked = sorted((mined for width in widths for mined in found(width)), key=lambda mined: mined.slack)
    templates = sorted({mined.template for mined in ranked})
    return [mined for template in templates for mined in [m for m in ranked if m.template == template][:keep]]


def _of_one(name: str, x: Tensor) -> Callable[[int], Iterator[Mined]]:
    """Templates 1, 2, 3, 7 and 5 of one variable."""
    scale = float(x.double().std(correction=0))

    def found(width: int) -> Iterator[Mined]:
        over = windows(x.shape[-1], width)
        ranges, met = inference.infer_operational_range(x, over, name), inference.infer_existence(x, over, name)
        yield Mined(1, width, ranges, float((ranges.upper - ranges.lower).mean()) / 2 / scale)
        yield Mined(2, width, met, float((met.upper - met.lower).mean()) / 2 / scale)
        held = inference.infer_until(x, over, name)
        yield Mined(3, width, held, float((held.met - _each(x, over, torch.amin)).mean()) / scale)
        levels = inference.infer_eventualities(x, over, name)
        yield Mined(7, width, levels, float((_each(x, over, torch.amax) - levels.bound).mean()) / scale)
        yield from _answers(5, width, (name, name), (x, x))

    return found


def _of_two(first: str, second: str, x1: Tensor, x2: Tensor) -> Callable[[int], Iterator[Mined]]:
    """Templates 4 and 6 of an ordered pair."""
    difference = x1 - x2
    scale = float(difference.double().std(correction=0))

    def found(width: int) -> Iterator[Mined]:
        over = windows(x1.shape[-1], width)
        apart = inference.infer_intra_task(x1, x2, over, first, second)
        means = torch.stack([difference[:, i : j + 1].double().mean() for i, j in over])
        if scale:
            yield Mined(4, width, apart, float((means - apart.bound).mean()) / scale)
        yield from _answers(6, width, (first, second), (x1, x2))

    return found


def _answers(template: Template, width: int, names: tuple[str, str], x: tuple[Tensor, Tensor]) -> Iterator[Mined]:
    """An answer within 1 to `width` steps, if there is something in it that the trigger explains."""
    last = x[0].shape[-1] - 1 - width
    if last < 0:
        return
    found = inference.infer_nested(*x, (0, last), (1, width), *names)
    answers = sliding_maximum(x[1][:, 1:], width).double()
    triggered = x[0][:, : last + 1] >= found.trigger
    if not found.vacuous and answers.amin() < found.response:
        slack = float((answers[triggered] - found.response).mean())
        yield Mined(template, width, found, slack / float(x[1].double().std(correction=0)))


def _each(x: Tensor, over: Sequence[Window], extreme: Callable[[Tensor, int], Tensor]) -> Tensor:
    """The extreme of every trace's windows: S x W."""
    return torch.stack([extreme(x[:, i : j + 1], -1) for i, j in over], -1).double()
