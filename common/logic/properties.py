"""Inferred parameters of a template, of one client or of many at once.

Source: FedSTL, algorithms.md §3.2, §3.7. Parameters are float64, *C or *C x W: C clients, W windows. `property[client]`
selects a client, `formula()` is its formula.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from common.errors import DataError
from common.logic import templates
from common.logic.formula import Formula
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
