"""Semantics of formulas on traces: robustness and truth (FedSTL, algorithms.md §3.1).

Traces are tensors B x T x D; `names` are the D variables. Robustness is differentiable: minima and maxima pass the
gradient to the readings that decide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import assert_never

import torch
from torch import Tensor

from common.errors import DataError
from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Linear, Not, Or, Until, horizon


def robustness(phi: Formula, traces: Tensor, names: Sequence[str], t: int = 0) -> Tensor:
    """Return ρ(φ, Y, t) of every trace: B x T x D -> B, in the units of the variables.

    ρ(x ≥ c) = x − c, ρ(x ≤ c) = c − x; ¬ is −, ∧ and □ the minimum, ∨ and ◇ the maximum,
    U max_{t'} min(ρ(ψ, t'), min_{t'' ∈ [t, t']} ρ(φ, t'')).

    Raises:
        DataError: A trace ends before t + horizon(φ), or lacks a variable.
    """
    return _values(phi, traces, names, False, t, t + 1).squeeze(-1)


def satisfied(phi: Formula, traces: Tensor, names: Sequence[str], t: int = 0) -> Tensor:
    """Return True for each trace that satisfies φ at t: B x T x D -> B, bool.

    Strict predicates are strict.

    Raises:
        DataError: As in `robustness`.
    """
    return _values(phi, traces, names, True, t, t + 1).squeeze(-1)


def _values(phi: Formula, traces: Tensor, names: Sequence[str], boolean: bool, start: int, stop: int) -> Tensor:
    if traces.ndim != 3 or traces.shape[-1] != len(names):
        raise DataError(
            f"traces of shape {' x '.join(map(str, traces.shape))}; expected B x T x D with D = {len(names)} variables"
        )
    length, required = traces.shape[-2], stop + horizon(phi)
    if start < 0 or length < required:
        raise DataError(
            f"the formula needs {required} steps, the trace has {length}; use longer traces or shorter windows"
        )
    columns = dict(zip(names, traces.unbind(-1), strict=True))
    return _Evaluation(columns, boolean).over(phi, start, stop)


@dataclass(frozen=True)
class _Evaluation:
    """Both semantics in one recursion: numbers under min, max, −, or truth values under and, or, not."""

    columns: dict[str, Tensor]
    boolean: bool

    def over(self, phi: Formula, start: int, stop: int) -> Tensor:
        """Return the values of φ at the times [start, stop): B x (stop − start)."""
        match phi:
            case Atom():
                return self._atom(phi, start, stop)
            case Not(part):
                return self._negated(self.over(part, start, stop))
            case And(members):
                return reduce(torch.minimum, (self.over(part, start, stop) for part in members))
            case Or(members):
                return reduce(torch.maximum, (self.over(part, start, stop) for part in members))
            case Implies(left, right):
                return torch.maximum(self._negated(self.over(left, start, stop)), self.over(right, start, stop))
            case Always(a, b, part):
                return sliding_minimum(self.over(part, start + a, stop + b), b - a + 1)
            case Eventually(a, b, part):
                return sliding_maximum(self.over(part, start + a, stop + b), b - a + 1)
            case Until():
                return self._until(phi, start, stop)
            case _:
                assert_never(phi)

    def _atom(self, phi: Atom, start: int, stop: int) -> Tensor:
        values = combine(self.columns, phi.expression)[..., start:stop]
        if not self.boolean:
            return phi.bound - values if phi.relation in ("<=", "<") else values - phi.bound
        match phi.relation:
            case "<=":
                return values <= phi.bound
            case ">=":
                return values >= phi.bound
            case "<":
                return values < phi.bound
            case ">":
                return values > phi.bound

    def _negated(self, values: Tensor) -> Tensor:
        return ~values if self.boolean else -values

    def _until(self, phi: Until, start: int, stop: int) -> Tensor:
        count = stop - start
        held_at, met_at = self.over(phi.phi, start, stop + phi.b), self.over(phi.psi, start + phi.a, stop + phi.b)
        held, best = held_at[..., :count], None
        for k in range(phi.b + 1):
            held = torch.minimum(held, held_at[..., k : k + count])
            if k >= phi.a:
                reached = torch.minimum(held, met_at[..., k - phi.a : k - phi.a + count])
                best = reached if best is None else torch.maximum(best, reached)
        assert best is not None
        return best


def combine(columns: dict[str, Tensor], expression: Linear) -> Tensor:
    """Return Σ c_i x_i of an expression: tensors of one shape -> the same shape.

    Raises:
        DataError: A variable is missing.
    """
    for name, _ in expression.terms:
        if name not in columns:
            raise DataError(f"the traces lack the variable '{name}'; they have: {', '.join(columns)}")
    return reduce(torch.add, (columns[n] if factor == 1 else columns[n] * factor for n, factor in expression.terms))


def sliding_minimum(values: Tensor, width: int) -> Tensor:
    """Return the minimum over [t, t + width) for every t: … x T -> … x (T − width + 1), in O(T log width)."""
    return _sliding(values, width, torch.amin, torch.minimum)


def sliding_maximum(values: Tensor, width: int) -> Tensor:
    """Return the maximum over [t, t + width) for every t; shapes as in `sliding_minimum`."""
    return _sliding(values, width, torch.amax, torch.maximum)


def _sliding(values: Tensor, width: int, of_all: Callable[..., Tensor], of_two: Callable[..., Tensor]) -> Tensor:
    if values.shape[-1] == width:
        return of_all(values, -1, keepdim=True)
    reach = 1
    while 2 * reach <= width:
        values = of_two(values[..., : values.shape[-1] - reach], values[..., reach:])
        reach *= 2
    rest = width - reach
    return of_two(values[..., : values.shape[-1] - rest], values[..., rest:]) if rest else values
