"""Inferred parameters of templates, and their tight values in closed form (FedSTL).

Source: FedSTL, algorithms.md §3.2, §3.7. Parameters are float64, *C or *C x W: C clients, W windows. `property[client]`
selects a client, `formula()` is its formula.

The formulas are derived in algorithms.md §3.3. Readings are *C x S x T: any number of client axes (or none), S training
traces, T steps. Every inferred property holds on all S traces. Tightening a parameter by its slack and 1e-6 violates it
on at least one. `over` are windows of steps.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from common.errors import DataError
from common.logic import templates
from common.logic.formula import STRICT, Formula
from common.logic.projection import strict_margin
from common.logic.semantics import sliding_maximum
from common.logic.templates import Window


@dataclass(frozen=True, eq=False)
class Property(ABC):
    """Parameters of a template; frozen, compared by identity."""

    weaker_up: ClassVar[tuple[str, ...]] = ()
    """Parameters that weaken the formula as they grow."""

    weaker_down: ClassVar[tuple[str, ...]] = ()
    """Parameters that weaken the formula as they fall."""

    @abstractmethod
    def formula(self) -> Formula:
        """Return the formula of one client.

        Raises:
            DataError: There are several clients, or the property is vacuous.
        """

    @property
    def vacuous(self) -> Tensor:
        """True for each client whose formula does not restrict its data: *C, bool."""
        return torch.zeros(self._first.shape[:-1], dtype=torch.bool)

    def __getitem__(self, client: int) -> Self:
        return self._with({name: getattr(self, name)[client] for name in self.weaker_up + self.weaker_down})

    def _with(self, parameters: dict[str, Any]) -> Self:
        return replace(self, **parameters)

    @property
    def _first(self) -> Tensor:
        first: Tensor = getattr(self, (self.weaker_up + self.weaker_down)[0])
        return first

    def _listed(self, name: str) -> list[float]:
        values: Tensor = getattr(self, name)
        if values.ndim != 1:
            raise DataError("this property has several clients; use property[client].formula()")
        return [float(value) for value in values]


@dataclass(frozen=True, eq=False)
class _Interval(Property):
    """Upper and lower bounds a_i, b_i per window, *C x W."""

    weaker_up, weaker_down = ("upper",), ("lower",)

    variable: str
    over: tuple[Window, ...]
    upper: Tensor
    lower: Tensor


class OperationalRange(_Interval):
    """Template 1: upper and lower bounds a_i, b_i of all readings per window, *C x W."""

    def formula(self) -> Formula:
        """Return ⋀_i □_[i,j] (x ≤ a_i ∧ x ≥ b_i)."""
        return templates.operational_range(self.variable, self.over, self._listed("upper"), self._listed("lower"))


class Existence(_Interval):
    """Template 2: interval [b_i, a_i] that some reading of each window meets, *C x W."""

    def formula(self) -> Formula:
        """Return ⋀_i ◇_[i,j] (x ≤ a_i ∧ x ≥ b_i)."""
        return templates.existence(self.variable, self.over, self._listed("upper"), self._listed("lower"))


@dataclass(frozen=True, eq=False)
class HeldUntil(Property):
    """Template 3: a_i (`held`) and b_i (`met`) per window, *C x W."""

    weaker_up = ("held", "met")

    variable: str
    over: tuple[Window, ...]
    held: Tensor
    met: Tensor
    literal: bool = False

    def formula(self) -> Formula:
        """Return ⋀_i (x < a_i) U (x < b_i)."""
        return templates.until(self.variable, self.over, self._listed("held"), self._listed("met"), self.literal)


@dataclass(frozen=True, eq=False)
class IntraTask(Property):
    """Template 4: lower bounds a_i of x₁ − x₂ per window, *C x W."""

    weaker_down = ("bound",)

    first: str
    second: str
    over: tuple[Window, ...]
    bound: Tensor

    def formula(self) -> Formula:
        """Return ⋀_i □_[i,j] (x₁ − x₂ > a_i)."""
        return templates.intra_task(self.first, self.second, self.over, self._listed("bound"))


@dataclass(frozen=True, eq=False)
class Response(Property):
    """Templates 5 (one variable) and 6 (two): trigger level a₁ and inferred response a₂, *C x 1.

    a₂ is +∞ for clients that never reach the trigger level.
    """

    weaker_up, weaker_down = ("trigger",), ("response",)

    first: str
    second: str
    span: Window
    delay: Window
    trigger: Tensor
    response: Tensor

    @property
    def vacuous(self) -> Tensor:
        """True for each client without a training trace that reaches the trigger level in the span: *C, bool."""
        return self.response.isinf().squeeze(-1)

    def formula(self) -> Formula:
        """Return □_[t1,t2] (x₁ ≥ a₁ → ◇_[t3,t4] x₂ ≥ a₂)."""
        (trigger,), (response,) = self._listed("trigger"), self._listed("response")
        if response == torch.inf:
            raise DataError(
                f"vacuous: '{self.first}' never reaches the trigger level between steps {self.span[0]} and {self.span[1]}; "
                "omit the property or lower the level"
            )
        return templates.nested(self.first, self.second, self.span, self.delay, trigger, response)


@dataclass(frozen=True, eq=False)
class Eventualities(Property):
    """Template 7: levels a_n that each window reaches, *C x W."""

    weaker_down = ("bound",)

    variable: str
    over: tuple[Window, ...]
    bound: Tensor

    def formula(self) -> Formula:
        """Return ⋀_n ◇_W_n (x ≥ a_n)."""
        return templates.eventualities(self.variable, self.over, self._listed("bound"))


CHUNK = 1 << 24
"""Elements that the search of template 2 holds in memory at once."""


def infer_operational_range(x: Tensor, over: Sequence[Window], variable: str, slack: float = 0.0) -> OperationalRange:
    """Infer template 1: a_i = max x + ε, b_i = min x − ε over all traces and the window.

    Raises:
        DataError: A window is outside the trace.
    """
    cut = _windows(x, over)
    upper = torch.stack([part.amax((-2, -1)) for part in cut], -1).double() + slack
    return OperationalRange(
        variable, tuple(over), upper, torch.stack([part.amin((-2, -1)) for part in cut], -1).double() - slack
    )


def infer_existence(x: Tensor, over: Sequence[Window], variable: str) -> Existence:
    """Infer template 2: the shortest interval that meets every trace's window, the leftmost of equals.

    Raises:
        DataError: A window is outside the trace.
    """
    covers = [smallest_cover(part) for part in _windows(x, over)]
    lower, upper = (torch.stack(bounds, -1).double() for bounds in zip(*covers, strict=True))
    return Existence(variable, tuple(over), upper, lower)


def infer_until(
    x: Tensor, over: Sequence[Window], variable: str, literal: bool = False, slack: float = STRICT
) -> HeldUntil:
    """Infer template 3: first b_i = max_S min_W x + ε, then a_i = max_S max_{t'' ≤ t'} x + ε, both strict.

    t' is the earliest step below b_i. `literal` counts t'' from step 0 instead of the window's start.

    Raises:
        DataError: A window is outside the trace.
    """
    held, met = [], []
    for (i, _), part in zip(over, _windows(x, over), strict=True):
        b = _above(part.amin(-1).amax(-1), x.dtype, slack)
        reached = (part < b.to(x.dtype)[..., None, None]).to(torch.uint8).argmax(-1, keepdim=True)
        so_far = part.cummax(-1).values.gather(-1, reached).amax((-2, -1))
        before = x[..., :i].amax((-2, -1)) if literal and i else so_far
        held.append(_above(so_far.maximum(before), x.dtype, slack))
        met.append(b)
    return HeldUntil(variable, tuple(over), torch.stack(held, -1), torch.stack(met, -1), literal)


def infer_intra_task(
    x1: Tensor, x2: Tensor, over: Sequence[Window], first: str, second: str, slack: float = STRICT
) -> IntraTask:
    """Infer template 4: a_i = min (x₁ − x₂) − ε, strict.

    Raises:
        DataError: A window is outside the trace.
    """
    lowest = torch.stack([part.amin((-2, -1)) for part in _windows(x1 - x2, over)], -1)
    return IntraTask(first, second, tuple(over), _below(lowest, x1.dtype, slack))


def infer_implication(
    x: Tensor, span: Window, delay: Window, variable: str, level: float = 0.75, slack: float = 0.0
) -> Response:
    """Infer template 5: `infer_nested` with one variable."""
    return infer_nested(x, x, span, delay, variable, variable, level, slack)


def infer_nested(
    x1: Tensor,
    x2: Tensor,
    span: Window,
    delay: Window,
    first: str,
    second: str,
    level: float = 0.75,
    slack: float = 0.0,
) -> Response:
    """Infer template 6: a₁ and a₂ = min over triggered t of max_{[t+t3, t+t4]} x₂ − ε.

    a₁ is the `level` quantile of all of x₁ (a reading). The property is vacuous for clients that reach a₁ nowhere in the
    span.

    Raises:
        DataError: Span and delay reach past T.
    """
    _windows(x2, [(span[0] + delay[0], span[1] + delay[1])])
    readings = x1.flatten(-2)
    trigger = readings.kthvalue(max(1, math.ceil(level * readings.shape[-1])), -1, keepdim=True).values
    triggered = x1[..., span[0] : span[1] + 1] >= trigger[..., None]
    responses = sliding_maximum(x2[..., span[0] + delay[0] : span[1] + delay[1] + 1], delay[1] - delay[0] + 1)
    response = torch.where(triggered, responses, torch.inf).flatten(-2).amin(-1, keepdim=True).double() - slack
    return Response(first, second, span, delay, trigger.double(), response)


def infer_eventualities(x: Tensor, over: Sequence[Window], variable: str, slack: float = 0.0) -> Eventualities:
    """Infer template 7: a_n = min_S max_{W_n} x − ε.

    Raises:
        DataError: A window is outside the trace.
    """
    reached = torch.stack([part.amax(-1).amin(-1) for part in _windows(x, over)], -1)
    return Eventualities(variable, tuple(over), reached.double() - slack)


def smallest_cover(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ends (b, a) of the shortest interval with a value of every row: … x S x w -> … each.

    Of equal intervals it is the leftmost. b is one of the values; a is the largest over rows of the row's least value ≥ b.
    """
    flat = values.reshape(-1, *values.shape[-2:]).sort(-1).values
    step = max(1, CHUNK // (values.shape[-2] ** 2 * values.shape[-1]))
    covers = [torch.stack(_cover(part)) for part in flat.tensor_split(tuple(range(step, len(flat), step)))]
    lower, upper = torch.cat(covers, -1).reshape(2, *values.shape[:-2])
    return lower, upper


def _cover(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the `smallest_cover` of sorted rows, P x S x w -> P each."""
    starts = rows.flatten(1).sort(-1).values
    queries = starts[:, None, :].expand(-1, rows.shape[1], -1).contiguous()
    endless = torch.nn.functional.pad(rows, (0, 1), value=torch.inf)
    ends = endless.gather(-1, torch.searchsorted(rows.contiguous(), queries)).amax(1)
    best = (ends - starts).argmin(-1, keepdim=True)
    return starts.gather(-1, best).squeeze(-1), ends.gather(-1, best).squeeze(-1)


def _windows(x: Tensor, over: Sequence[Window]) -> list[Tensor]:
    if x.ndim < 2 or 0 in x.shape:
        raise DataError(
            f"traces of shape {' x '.join(map(str, x.shape))}; inference needs … x S x T with at least one of each"
        )
    for i, j in over:
        if not 0 <= i <= j < x.shape[-1]:
            raise DataError(f"window [{i},{j}] is not within the {x.shape[-1]} steps of a trace; use 0 <= a <= b < T")
    return [x[..., i : j + 1] for i, j in over]


def _above(bound: Tensor, dtype: torch.dtype, slack: float) -> Tensor:
    return bound.double() + strict_margin(bound, dtype, slack)


def _below(bound: Tensor, dtype: torch.dtype, slack: float) -> Tensor:
    return bound.double() - strict_margin(bound, dtype, slack)
