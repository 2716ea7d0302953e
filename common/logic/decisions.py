"""Cheapest path through a chain of choices, for all traces at once (FedSTL, algorithms.md §3.4)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from common.logic.clauses import Cell, Interval
from common.logic.plan import Arc, Chain
from common.logic.projections import Bounds


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
    taken = _cheapest(chain, options)
    chosen: dict[Cell, Tensor] = {}
    for layer, arc in zip(chain, taken, strict=True):
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
    state, taken = torch.zeros_like(cost[..., :1], dtype=torch.int64), []
    for before, best in reversed(best_arcs):
        arc = best.gather(-1, state)
        state = before[arc]
        taken.append(arc.squeeze(-1))
    return taken[::-1]


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
