"""Teacher: projection to the closest trace that satisfies a formula (FedSTL Eq 2, algorithms.md §3.4).

The result is the exact L1-closest trace; a strict bound is kept by a margin of 1e-6. It satisfies the formula by
construction. A trace that satisfies the formula is returned unchanged.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from common.arrays import total_of
from common.errors import ConfigError, DataError
from common.logic.formula import STRICT, Formula, Linear, horizon
from common.logic.plan import CAP, FREE, Arc, Cell, Chain, Clause, Interval, Plan, plan
from common.logic.semantics import combine


def strict_margin(bound: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the distance between `bound` and a reading that satisfies it strictly in `dtype`.

    The distance is ε, or a few units in the last place where those exceed ε.
    """
    return (4 * torch.finfo(dtype).eps * bound.double().abs()).clamp(min=STRICT)


def clamp(traces: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the closest trace with lower ≤ Y ≤ upper (template 1); shapes of traces and bounds broadcast.

    Each trace or client may have its own box. No box may be empty; a vmapped function cannot check this.
    """
    return traces.maximum(lower).minimum(upper)


def separate(x1: Tensor, x2: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
    """Return the closest pair with x₁ − x₂ > bound (template 4); shapes broadcast.

    Both move by half, which is also the L2-closest point.
    """
    gap = x1 - x2
    lifted = torch.where(gap > bound, gap, bound + strict_margin(bound, gap.dtype).to(gap.dtype))
    step = round_away(lifted - gap, x1.abs() + x2.abs() + lifted.abs())
    return x1 + step / 2, x2 - step / 2


def property_loss(forecast: Tensor, corrected: Tensor) -> Tensor:
    """Return L_p = mean |Ŷ − Ŷ*|; the teacher's projection Ŷ* is a constant (Eq 2).

    It is zero exactly where the forecast satisfies the property. The gradient is sign(Ŷ − Ŷ*)/n on violated readings and 0
    elsewhere.
    """
    return (forecast - corrected.detach()).abs().mean()


def round_away(step: Tensor, size: Tensor) -> Tensor:
    """Return a non-zero step lengthened by the rounding error of adding it to numbers of that size."""
    return step + 4 * torch.finfo(step.dtype).eps * size * step.sign()


def shares(axis: Linear) -> dict[str, float]:
    """Return the movement of each variable per unit growth; those with the largest factors share it."""
    largest = max(abs(factor) for _, factor in axis.terms)
    movers = [(name, factor) for name, factor in axis.terms if abs(factor) == largest]
    return {name: 1 / (len(movers) * factor) for name, factor in movers}


@dataclass(frozen=True)
class Bounds:
    """n intervals in a dtype: extreme values inside, and targets of readings outside; n each."""

    lowest: Tensor
    highest: Tensor
    low_target: Tensor
    high_target: Tensor

    @classmethod
    def of(cls, intervals: Sequence[Interval], like: Tensor) -> Self:
        """Convert intervals to tensors.

        Raises:
            ConfigError: The margins of open ends leave no value in the dtype of `like`.
        """
        ends = torch.tensor([(each.lower, each.upper) for each in intervals], dtype=torch.float64).T
        is_open = torch.tensor([(each.open_below, each.open_above) for each in intervals]).T
        outwards = ends.new_tensor([[torch.inf], [-torch.inf]])
        target = torch.where(is_open, ends + outwards.sign() * strict_margin(ends, like.dtype), ends).to(like)
        inside = torch.where(is_open, ends.to(like).nextafter(outwards.to(like)), ends.to(like))
        if bool((target[0] > target[1]).any()):
            raise ConfigError(
                f"an interval is narrower than the margin of {STRICT} or the resolution of {like.dtype}; widen it"
            )
        return cls(*inside, *target)

    def project(self, x: Tensor) -> Tensor:
        """Return the closest values inside: … x n -> … x n; values inside are unchanged."""
        return torch.where(x > self.highest, self.high_target, torch.where(x < self.lowest, self.low_target, x))


def decide(
    chain: Chain, values: Sequence[Tensor], boxed: Sequence[Tensor], weights: Sequence[float]
) -> dict[Cell, Tensor]:
    """Return the values of the chain's cells in the closest trace: cell -> B.

    Args:
        chain: Choices that share cells.
        values: Values of each axis, B x T.
        boxed: The same values inside the formula's box, B x T.
        weights: L1 cost of moving each axis by 1.
    """
    options = _Options.of(chain, values, weights)
    chosen: dict[Cell, Tensor] = {}
    for layer, arc in zip(chain, _cheapest(chain, options), strict=True):
        for cell, column in _rows(layer, options).items():
            t, axis = cell
            previous = chosen.get(cell, boxed[axis][..., t])
            candidates = torch.cat((previous[..., None], options.projected), -1)
            chosen[cell] = candidates.gather(-1, (column.to(arc.device)[arc] + 1)[..., None]).squeeze(-1)
    return chosen


@dataclass(frozen=True)
class _Options:
    """Intervals that arcs assign to cells, as columns: projected readings and their cost, B x n each."""

    column: dict[tuple[Cell, Interval], int]
    projected: Tensor
    cost: Tensor

    @classmethod
    def of(cls, chain: Chain, values: Sequence[Tensor], weights: Sequence[float]) -> "_Options":
        seen = dict.fromkeys(
            (cell, interval) for layer in chain for arc in layer for cell, *both in arc.changes for interval in both
        )
        x = torch.stack([values[axis][..., t] for (t, axis), _ in seen], -1)
        projected = Bounds.of([interval for _, interval in seen], x).project(x)
        cost = (x - projected).abs() * x.new_tensor([weights[axis] for (_, axis), _ in seen])
        return cls({key: n for n, key in enumerate(seen)}, projected, cost)


def _cheapest(chain: Chain, options: _Options) -> list[Tensor]:
    """Return the index of the arc that each trace takes in each layer, B each.

    Costs are summed forwards; decisions are read backwards.
    """
    cost, best_arcs = options.cost.new_zeros((*options.cost.shape[:-1], 1)), []
    for layer in chain:
        before = torch.tensor([arc.before for arc in layer], device=cost.device)
        total = cost[..., before] + _extra(layer, options)
        cost, best = _best_into(layer, total)
        best_arcs.append((before, best))
    state, path = torch.zeros_like(cost[..., :1], dtype=torch.int64), []
    for before, best in reversed(best_arcs):
        arc = best.gather(-1, state)
        state = before[arc]
        path.append(arc.squeeze(-1))
    return path[::-1]


def _extra(layer: tuple[Arc, ...], options: _Options) -> Tensor:
    """Return the cost that each arc adds to the distance: B x arcs."""
    used = sorted({options.column[cell, each] for arc in layer for cell, *both in arc.changes for each in both})
    row = {column: n for n, column in enumerate(used)}
    signs = torch.zeros(len(used), len(layer), dtype=options.cost.dtype)
    for number, arc in enumerate(layer):
        for cell, old, new in arc.changes:
            signs[row[options.column[cell, old]], number] -= 1
            signs[row[options.column[cell, new]], number] += 1
    return options.cost[..., used] @ signs.to(options.cost.device)


def _best_into(layer: tuple[Arc, ...], total: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least cost of reaching each state and its arc: B x states each."""
    into: defaultdict[int, list[int]] = defaultdict(list)
    for number, arc in enumerate(layer):
        into[arc.after].append(number)
    cheapest = [(total[..., into[state]].min(-1), into[state]) for state in sorted(into)]
    arcs = [torch.tensor(numbers, device=total.device)[least.indices] for least, numbers in cheapest]
    return torch.stack([least.values for least, _ in cheapest], -1), torch.stack(arcs, -1)


def _rows(layer: tuple[Arc, ...], options: _Options) -> dict[Cell, Tensor]:
    """Return for each cell of the layer the column that each arc assigns to it; −1 leaves it unchanged."""
    rows: dict[Cell, Tensor] = {}
    for number, arc in enumerate(layer):
        for cell, _, new in arc.changes:
            rows.setdefault(cell, torch.full((len(layer),), -1))[number] = options.column[cell, new]
    return rows


@dataclass(frozen=True)
class Teacher:
    """Projection for one formula and traces of one shape, built once by `Teacher.of`."""

    plan: Plan
    names: tuple[str, ...]
    length: int

    @classmethod
    def of(cls, phi: Formula, names: Sequence[str], length: int, cap: int = CAP) -> Self:
        """Prepare φ for traces of `length` steps of the variables `names`.

        Raises:
            ConfigError: φ contradicts itself, has more than `cap` dependent alternatives, or binds a variable twice at a step
                by different expressions.
            DataError: φ is longer than the trace, or contains another variable.
        """
        if length <= horizon(phi):
            raise DataError(f"the formula needs {horizon(phi) + 1} steps, the trace has {length}; shorten its windows")
        decomposition = plan(phi, cap)
        for axis in decomposition.axes:
            combine(dict.fromkeys(names, torch.empty(0)), axis)
        return cls(decomposition, tuple(names), length)

    def __call__(self, traces: Tensor) -> Tensor:
        """Return Y*, the closest traces that satisfy φ: … x T x D -> … x T x D.

        torch.func.vmap is supported if φ has no choices (templates 1 and 4).

        Raises:
            DataError: The traces have another shape.
        """
        if traces.shape[-2:] != (self.length, len(self.names)):
            shape = " x ".join(map(str, traces.shape))
            raise DataError(f"traces of shape {shape}; this teacher corrects … x {self.length} x {len(self.names)}")
        columns = dict(zip(self.names, traces.unbind(-1), strict=True))
        values = [combine(columns, axis) for axis in self.plan.axes]
        moved = dict(columns)
        for axis, value, target in zip(self.plan.axes, values, self._targets(values), strict=True):
            moved |= _moved(axis, value, target, moved)
        return torch.stack([moved[name] for name in self.names], -1)

    def _targets(self, values: list[Tensor]) -> list[Tensor]:
        """Return the target values of each axis, … x T each."""
        boxed = [_boxed(self.plan.box, axis, value) for axis, value in enumerate(values)]
        if not self.plan.chains:
            return boxed
        weights = [total_of(map(abs, shares(axis).values())) for axis in self.plan.axes]
        targets = [target.clone() for target in boxed]
        for chain in self.plan.chains:
            for (t, axis), target in decide(chain, values, boxed, weights).items():
                targets[axis][..., t] = target
        return targets


def _boxed(box: Clause, axis: int, value: Tensor) -> Tensor:
    """Return the values of one axis inside the box: … x T -> … x T."""
    intervals = [box.get((t, axis), FREE) for t in range(value.shape[-1])]
    return Bounds.of(intervals, value).project(value)


def _moved(axis: Linear, value: Tensor, target: Tensor, columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the variables of an axis at its target; a single variable takes the target to the last bit."""
    if axis.terms == ((name := axis.terms[0][0], 1.0),):
        return {name: torch.where(target == value, columns[name], target)}
    step = round_away(target - value, target.abs() + sum(columns[name].abs() * abs(c) for name, c in axis.terms))
    return {name: columns[name] + share * step for name, share in shares(axis).items()}
