"""Teacher: projection to the closest trace that satisfies a formula (FedSTL Eq 2, algorithms.md §3.4).

The result is the exact L1-closest trace; a strict bound is kept by a margin of 1e-6. It satisfies the formula by
construction. A trace that satisfies the formula is returned unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from common.errors import DataError
from common.logic.clauses import CAP, FREE, Clause
from common.logic.decisions import decide
from common.logic.formula import Formula, Linear, horizon
from common.logic.plan import Plan, plan
from common.logic.projections import Bounds, Policy, round_away, shares
from common.logic.semantics import combine


@dataclass(frozen=True)
class Teacher:
    """Projection for one formula and traces of one shape, built once by `Teacher.of`."""

    plan: Plan
    names: tuple[str, ...]
    length: int
    policy: Policy

    @classmethod
    def of(cls, phi: Formula, names: Sequence[str], length: int, policy: Policy = "split", cap: int = CAP) -> Self:
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
        return cls(decomposition, tuple(names), length, policy)

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
            moved |= _moved(axis, value, target, moved, self.policy)
        return torch.stack([moved[name] for name in self.names], -1)

    def _targets(self, values: list[Tensor]) -> list[Tensor]:
        """Return the target values of each axis, … x T each."""
        boxed = [_boxed(self.plan.box, axis, value) for axis, value in enumerate(values)]
        if not self.plan.chains:
            return boxed
        weights = [sum(map(abs, shares(axis, self.policy).values())) for axis in self.plan.axes]
        targets = [target.clone() for target in boxed]
        for chain in self.plan.chains:
            for (t, axis), target in decide(chain, values, boxed, weights).items():
                targets[axis][..., t] = target
        return targets


def _boxed(box: Clause, axis: int, value: Tensor) -> Tensor:
    """Return the values of one axis inside the box: … x T -> … x T."""
    intervals = [box.get((t, axis), FREE) for t in range(value.shape[-1])]
    return Bounds.of(intervals, value).project(value)


def _moved(
    axis: Linear, value: Tensor, target: Tensor, columns: dict[str, Tensor], policy: Policy
) -> dict[str, Tensor]:
    """Return the variables of an axis at its target; a single variable takes the target to the last bit."""
    if axis.terms == ((name := axis.terms[0][0], 1.0),):
        return {name: torch.where(target == value, columns[name], target)}
    step = round_away(target - value, target.abs() + sum(columns[name].abs() * abs(c) for name, c in axis.terms))
    return {name: columns[name] + share * step for name, share in shares(axis, policy).items()}
