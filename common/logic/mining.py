"""Template-free mining (template 8): every template over a grid of windows, the tightest first.

Source: algorithms.md §3.2. The slack of a property is the mean distance between its bounds and the readings that they
bound. The mean is over the training traces; the unit is one standard deviation of the bounded quantity. A range has
half its width as slack. Templates 4 to 7 have the mean of x₁ − x₂, of a window's maximum or of a response, less its
bound. An until has its goal less the window's minimum.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

from common.errors import DataError
from common.logic import inference
from common.logic.formula import Formula
from common.logic.inference import Property, Template, Window, windows
from common.logic.semantics import sliding_maximum

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 24)
"""Widths of windows, and longest delays of a response, in the search grid."""


@dataclass(frozen=True)
class MinedProperty:
    """Property that holds on every training trace, its width of windows and its slack."""

    width: int
    inferred: Property
    slack: float

    @property
    def template(self) -> Template:
        """Number of the template."""
        return self.inferred.template

    @property
    def formula(self) -> Formula:
        """Formula of the property."""
        return self.inferred.formula()


def mine(traces: Tensor, names: Sequence[str], widths: Sequence[int] = WIDTHS) -> tuple[MinedProperty, ...]:
    """Return the tightest property of every template and choice of variables, least slack first.

    Omitted are constant variables and vacuous properties. A response is vacuous if its trigger never occurs, or if it
    follows without its trigger as well.

    Args:
        traces: Training traces, S x T x D.
        names: Names of the D variables.
        widths: Widths of windows in the search grid.

    Raises:
        DataError: The traces are not S x T x D.
    """
    if traces.ndim != 3 or traces.shape[-1] != len(names) or 0 in traces.shape:
        raise DataError(
            f"traces of shape {' x '.join(map(str, traces.shape))}; mining needs S x T x {len(names)} readings"
        )
    columns = {name: x for name, x in zip(names, traces.unbind(-1), strict=True) if x.amin() < x.amax()}
    fitting = [width for width in widths if 1 <= width <= traces.shape[1]]
    best: list[MinedProperty] = []
    for name, x in columns.items():
        best += _tightest(fitting, _of_one(name, x))
    for first, second in permutations(columns, 2):
        best += _tightest(fitting, _of_two(first, second, columns[first], columns[second]))
    return tuple(sorted(best, key=lambda mined: mined.slack))


def _tightest(widths: list[int], search: Callable[[int], Iterator[MinedProperty]]) -> list[MinedProperty]:
    """Return the property of least slack of each template."""
    ranked = sorted((mined for width in widths for mined in search(width)), key=lambda mined: mined.slack)
    return [next(m for m in ranked if m.template == template) for template in sorted({m.template for m in ranked})]


def _of_one(name: str, x: Tensor) -> Callable[[int], Iterator[MinedProperty]]:
    """Return the search of templates 1, 2, 3, 7 and 5 for one variable."""
    scale = float(x.double().std(correction=0))

    def search(width: int) -> Iterator[MinedProperty]:
        over = windows(x.shape[-1], width)
        for interval in (inference.infer_operational_range(x, over, name), inference.infer_existence(x, over, name)):
            bounds = interval.parameters
            yield MinedProperty(width, interval, float((bounds["upper"] - bounds["lower"]).mean()) / 2 / scale)
        held = inference.infer_until(x, over, name)
        yield MinedProperty(width, held, float((held.parameters["met"] - _each(x, over, torch.amin)).mean()) / scale)
        levels = inference.infer_eventualities(x, over, name)
        reached = _each(x, over, torch.amax) - levels.parameters["bound"]
        yield MinedProperty(width, levels, float(reached.mean()) / scale)
        yield from _responses(inference.infer_implication, (x,), width, name)

    return search


def _of_two(first: str, second: str, x1: Tensor, x2: Tensor) -> Callable[[int], Iterator[MinedProperty]]:
    """Return the search of templates 4 and 6 for an ordered pair."""
    difference = x1 - x2
    scale = float(difference.double().std(correction=0))

    def search(width: int) -> Iterator[MinedProperty]:
        over = windows(x1.shape[-1], width)
        apart = inference.infer_intra_task(x1, x2, over, first, second)
        means = torch.stack([difference[:, i : j + 1].double().mean() for i, j in over])
        if scale:
            yield MinedProperty(width, apart, float((means - apart.parameters["bound"]).mean()) / scale)
        yield from _responses(inference.infer_nested, (x1, x2), width, first, second)

    return search


def _responses(
    infer: Callable[..., Property], x: tuple[Tensor, ...], width: int, *names: str
) -> Iterator[MinedProperty]:
    """Yield a response within 1 to `width` steps if the trigger explains part of it."""
    last = x[0].shape[-1] - 1 - width
    if last < 0:
        return
    inferred = infer(*x, (0, last), (1, width), *names)
    trigger, response = inferred.parameters["trigger"], inferred.parameters["response"]
    responses = sliding_maximum(x[-1][:, 1:], width).double()
    if not inferred.vacuous and responses.amin() < response:
        slack = float((responses[x[0][:, : last + 1] >= trigger] - response).mean())
        yield MinedProperty(width, inferred, slack / float(x[-1].double().std(correction=0)))


def _each(x: Tensor, over: Sequence[Window], extreme: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Return the extreme value of every trace's windows: S x W."""
    return torch.stack([extreme(x[:, i : j + 1], -1) for i, j in over], -1).double()
