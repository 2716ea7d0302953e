"""The teacher: the closest trace that satisfies a formula (FedSTL Eq 2, algorithms.md §3.4).

Closest in L1, exactly; a strict bound is kept by 1e-6. The answer satisfies the formula by construction, and a trace that
satisfies it already is returned as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from common.errors import DataError
from common.logic.clauses import CAP, FREE, Clause
from common.logic.decisions import decided
from common.logic.formula import Formula, Linear, horizon
from common.logic.plan import Plan, plan
from common.logic.projections import Bounds, Policy, rounded_away, shares
from common.logic.semantics import combined


@dataclass(frozen=True)
class Teacher:
    """A formula made ready to correct traces of one shape; `Teacher.of` makes one, which serves any number of batches."""

    plan: Plan
    names: tuple[str, ...]
    length: int
    policy: Policy

    @classmethod
    def of(cls, phi: Formula, names: Sequence[str], length: int, policy: Policy = "split", cap: int = CAP) -> Self:
        """Work φ out for traces of `length` steps of the variables `names`.

        Raises ConfigError if φ contradicts itself, has more than `cap` alternatives that hang together, or binds a variable
        twice at a step by different expressions; DataError if φ is longer than the trace or speaks of another variable.
        """
        if length <= horizon(phi):
            raise DataError(
                f"the formula looks at {horizon(phi) + 1} steps, the trace has {length}: shorten its windows"
            )
        found = plan(phi, cap)
        for axis in found.axes:
            combined(dict.fromkeys(names, torch.empty(0)), axis)
        return cls(found, tuple(names), length, policy)

    def __call__(self, traces: Tensor) -> Tensor:
        """Y*, the closest traces that satisfy φ: … x T x D -> … x T x D.

        Under torch.func.vmap where φ has no choices (templates 1 and 4). Raises DataError if the shape is another.
        """
        if traces.shape[-2:] != (self.length, len(self.names)):
            shape = " x ".join(map(str, traces.shape))
            raise DataError(f"this teacher corrects … x {self.length} x {len(self.names)}, not {shape}")
        columns = dict(zip(self.names, traces.unbind(-1), strict=True))
        values = [combined(columns, axis) for axis in self.plan.axes]
        moved = dict(columns)
        for axis, value, target in zip(self.plan.axes, values, self._targets(values), strict=True):
            moved |= _moved(axis, value, target, moved, self.policy)
        return torch.stack([moved[name] for name in self.names], -1)

    def _targets(self, values: list[Tensor]) -> list[Tensor]:
        """Where each axis must go, … x T each."""
        boxed = [_boxed(self.plan.box, axis, value) for axis, value in enumerate(values)]
        if not self.plan.chains:
            return boxed
        weights = [sum(map(abs, shares(axis, self.policy).values())) for axis in self.plan.axes]
        targets = [target.clone() for target in boxed]
        for chain in self.plan.chains:
            for (t, axis), target in decided(chain, values, boxed, weights).items():
                targets[axis][..., t] = target
        return targets


def closest(phi: Formula, traces: Tensor, names: Sequence[str], policy: Policy = "split", cap: int = CAP) -> Tensor:
    """Y* of a batch, B x T x D, in one call; raises as `Teacher.of`, and DataError if a reading is not a number."""
    if bool(traces.isnan().any()):
        raise DataError("a forecast holds values that are not numbers; correct the forecaster, not its output")
    return Teacher.of(phi, names, traces.shape[-2], policy, cap)(traces)


def _boxed(box: Clause, axis: int, value: Tensor) -> Tensor:
    """The values of one axis inside the box: … x T -> … x T."""
    intervals = [box.get((t, axis), FREE) for t in range(value.shape[-1])]
    return Bounds.of(intervals, value).project(value)


def _moved(
    axis: Linear, value: Tensor, target: Tensor, columns: dict[str, Tensor], policy: Policy
) -> dict[str, Tensor]:
    """The variables of an axis where it has its target; a variable by itself takes the target to the last bit."""
    if axis.terms == ((name := axis.terms[0][0], 1.0),):
        return {name: torch.where(target == value, columns[name], target)}
    step = rounded_away(target - value, target.abs() + sum(columns[name].abs() * abs(c) for name, c in axis.terms))
    return {name: columns[name] + share * step for name, share in shares(axis, policy).items()}
