"""Templates of formulas (FedSTL, Table 1), their inferred parameters, and tight values in closed form.

Source: FedSTL, algorithms.md §3.2, §3.7. The paper prints the windows as [i, i+t]; disjoint windows are the default here, as in
the authors' code (`windows`). Parameters are float64, *C or *C x W: C clients, W windows. `property[client]` selects a client,
`formula()` is its formula.

The formulas of the parameters are derived in algorithms.md §3.3. Readings are *C x S x T: any number of client axes (or
none), S training traces, T steps. Every inferred property holds on all S traces. Tightening a parameter by 1e-6, and by the
margin 1e-6 of strict relations, violates it on at least one. `over` are windows of steps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from common.errors import ConfigError, DataError
from common.logic.formula import Always, And, Eventually, Formula, Implies, Until, Variable, conjunction
from common.logic.projection import strict_margin
from common.logic.semantics import sliding_maximum

Template = Literal[1, 2, 3, 4, 5, 6, 7]
"""Number of a template in Table 1."""

Window = tuple[int, int]
"""First and last step, both included."""


def windows(length: int, width: int, stride: int = 0) -> tuple[Window, ...]:
    """Return windows of `width` steps that cover `length` steps.

    They are disjoint and the last is cut short, unless `stride` is set. `windows(24, 2)` are FHWA's twelve;
    `windows(24, 2, 1)` the paper's overlapping [i, i+1], all of full width.

    Raises:
        ConfigError: The windows do not fit.
    """
    if width < 1 or length < width or stride < 0:
        raise ConfigError(
            f"windows of {width} steps do not fit {length} steps; use 1 to {length} steps and a stride of 0 or more"
        )
    if stride:
        return tuple((i, i + width - 1) for i in range(0, length - width + 1, stride))
    return tuple((i, min(i + width, length) - 1) for i in range(0, length, width))


def operational_range(variable: str, over: Sequence[Window], upper: Sequence[float], lower: Sequence[float]) -> Formula:
    """Build template 1, bounds of all readings: ⋀_i □_[i,j] (x ≤ a_i ∧ x ≥ b_i)."""
    x = Variable(variable)
    return conjunction([Always(i, j, And((x <= a, x >= b))) for (i, j), a, b in zip(over, upper, lower, strict=True)])


def existence(variable: str, over: Sequence[Window], upper: Sequence[float], lower: Sequence[float]) -> Formula:
    """Build template 2, an interval that some reading meets: ⋀_i ◇_[i,j] (x ≤ a_i ∧ x ≥ b_i)."""
    x = Variable(variable)
    return conjunction(
        [Eventually(i, j, And((x <= a, x >= b))) for (i, j), a, b in zip(over, upper, lower, strict=True)]
    )


def until(variable: str, over: Sequence[Window], held: Sequence[float], met: Sequence[float]) -> Formula:
    """Build template 3: ⋀_i (x < a_i) U_[0,j−i] (x < b_i) at step i, `held` the a_i and `met` the b_i."""
    x = Variable(variable)
    return conjunction(
        [Always(i, i, Until(0, j - i, x < a, x < b)) for (i, j), a, b in zip(over, held, met, strict=True)]
    )


def intra_task(first: str, second: str, over: Sequence[Window], bound: Sequence[float]) -> Formula:
    """Build template 4, lower bounds of a difference: ⋀_i □_[i,j] (x₁ − x₂ > a_i)."""
    difference = Variable(first) - Variable(second)
    return conjunction([Always(i, j, difference > a) for (i, j), a in zip(over, bound, strict=True)])


def nested(first: str, second: str, span: Window, delay: Window, trigger: float, response: float) -> Formula:
    """Build template 6: □_[t1,t2] (x₁ ≥ a₁ → ◇_[t3,t4] x₂ ≥ a₂); template 5 has one variable.

    Raises:
        DataError: a₂ is infinite, since a₁ is never reached.
    """
    if response == math.inf:
        raise DataError(
            f"vacuous: '{first}' never reaches the trigger level between steps {span[0]} and {span[1]}; "
            "omit the property or lower the level"
        )
    reaction = Eventually(*delay, Variable(second) >= response)
    return Always(*span, Implies(Variable(first) >= trigger, reaction))


def eventualities(variable: str, over: Sequence[Window], bound: Sequence[float]) -> Formula:
    """Build template 7, levels that each window reaches: ◇_W₁ (x ≥ a₁) ∧ … ∧ ◇_W_n (x ≥ a_n)."""
    x = Variable(variable)
    return conjunction([Eventually(i, j, x >= a) for (i, j), a in zip(over, bound, strict=True)])


OF_WINDOWS: Mapping[int, Callable[..., Formula]] = {
    1: operational_range,
    2: existence,
    3: until,
    4: intra_task,
    7: eventualities,
}
"""Template -> its formula, from variables, windows and a list of each parameter by its name."""


@dataclass(frozen=True, eq=False)
class Property:
    """Template with parameters; compared by identity.

    Args:
        template: Number of the template.
        variables: Names of its variables; two in templates 4 and 6.
        over: Windows; in templates 5 and 6 the span of the trigger and the delay of the response.
        parameters: `upper` and `lower`, `held` and `met`, or `bound`, *C x W; in templates 5 and 6 `trigger` and `response`,
            *C x 1, the response +∞ for clients that never reach the trigger level.
    """

    template: Template
    variables: tuple[str, ...]
    over: tuple[Window, ...]
    parameters: Mapping[str, Tensor]

    def formula(self) -> Formula:
        """Return the formula of one client.

        Raises:
            DataError: There are several clients, or the property is vacuous.
        """
        if any(values.ndim != 1 for values in self.parameters.values()):
            raise DataError("this property has several clients; use property[client].formula()")
        values = {name: list(map(float, by_window)) for name, by_window in self.parameters.items()}
        if self.template in OF_WINDOWS:
            return OF_WINDOWS[self.template](*self.variables, self.over, **values)
        (span, delay), (trigger,), (response,) = self.over, values["trigger"], values["response"]
        return nested(self.variables[0], self.variables[-1], span, delay, trigger, response)

    @property
    def vacuous(self) -> Tensor:
        """True for each client of which no trace reaches the trigger, so that any data fit: *C, bool."""
        (first, *_) = self.parameters.values()
        return self.parameters.get("response", torch.zeros_like(first)).isinf().any(-1)

    def __getitem__(self, client: int) -> "Property":
        return replace(self, parameters={name: values[client] for name, values in self.parameters.items()})


CHUNK = 1 << 24
"""Elements that the search of template 2 holds in memory at once."""


def infer_operational_range(x: Tensor, over: Sequence[Window], variable: str) -> Property:
    """Infer template 1: a_i = max x, b_i = min x over all traces and the window.

    Raises:
        DataError: A window is outside the trace.
    """
    cut = _windows(x, over)
    upper, lower = [window.amax((-2, -1)) for window in cut], [window.amin((-2, -1)) for window in cut]
    return _property(1, (variable,), over, upper=upper, lower=lower)


def infer_existence(x: Tensor, over: Sequence[Window], variable: str) -> Property:
    """Infer template 2: the shortest interval that meets every trace's window, the leftmost of equals.

    Raises:
        DataError: A window is outside the trace.
    """
    lower, upper = zip(*(smallest_cover(window) for window in _windows(x, over)), strict=True)
    return _property(2, (variable,), over, upper=upper, lower=lower)


def infer_until(x: Tensor, over: Sequence[Window], variable: str) -> Property:
    """Infer template 3: first b_i = max_S min_W x + ε, then a_i = max_S max_{t'' ≤ t'} x + ε, both strict.

    t' is the earliest step below b_i, t'' a step from the window's start on.

    Raises:
        DataError: A window is outside the trace.
    """
    held, met = [], []
    for window in _windows(x, over):
        b = _above(window.amin(-1).amax(-1), x.dtype)
        reached = (window < b.to(x.dtype)[..., None, None]).to(torch.uint8).argmax(-1, keepdim=True)
        so_far = window.cummax(-1).values.gather(-1, reached).amax((-2, -1))
        held.append(_above(so_far, x.dtype))
        met.append(b)
    return _property(3, (variable,), over, held=held, met=met)


def infer_intra_task(x1: Tensor, x2: Tensor, over: Sequence[Window], first: str, second: str) -> Property:
    """Infer template 4: a_i = min (x₁ − x₂) − ε, strict.

    Raises:
        DataError: A window is outside the trace.
    """
    lowest = [window.amin((-2, -1)) for window in _windows(x1 - x2, over)]
    return _property(4, (first, second), over, bound=[-_above(-bound, x1.dtype) for bound in lowest])


def infer_implication(x: Tensor, span: Window, delay: Window, variable: str, level: float = 0.75) -> Property:
    """Infer template 5: `infer_nested` with one variable."""
    return replace(infer_nested(x, x, span, delay, variable, variable, level), template=5, variables=(variable,))


def infer_nested(
    x1: Tensor, x2: Tensor, span: Window, delay: Window, first: str, second: str, level: float = 0.75
) -> Property:
    """Infer template 6: a₁ and a₂ = min over triggered t of max_{[t+t3, t+t4]} x₂.

    a₁ is the `level` quantile of all of x₁ (a reading). The property is vacuous for clients that reach a₁ nowhere in the
    span.

    Raises:
        DataError: Span and delay reach past T.
    """
    (reach,) = _windows(x2, [(span[0] + delay[0], span[1] + delay[1])])
    readings = x1.flatten(-2)
    trigger = readings.kthvalue(max(1, math.ceil(level * readings.shape[-1])), -1).values
    triggered = x1[..., span[0] : span[1] + 1] >= trigger[..., None, None]
    responses = sliding_maximum(reach, delay[1] - delay[0] + 1)
    response = torch.where(triggered, responses, torch.inf).flatten(-2).amin(-1)
    return _property(6, (first, second), (span, delay), trigger=[trigger], response=[response])


def infer_eventualities(x: Tensor, over: Sequence[Window], variable: str) -> Property:
    """Infer template 7: a_n = min_S max_{W_n} x.

    Raises:
        DataError: A window is outside the trace.
    """
    return _property(7, (variable,), over, bound=[window.amax(-1).amin(-1) for window in _windows(x, over)])


def smallest_cover(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ends (b, a) of the shortest interval with a value of every row: … x S x w -> … each.

    Of equal intervals it is the leftmost. b is one of the values; a is the largest over rows of the row's least value ≥ b.
    """
    flat = values.reshape(-1, *values.shape[-2:]).sort(-1).values
    step = max(1, CHUNK // (values.shape[-2] ** 2 * values.shape[-1]))
    covers = [torch.stack(_cover(rows)) for rows in flat.tensor_split(tuple(range(step, len(flat), step)))]
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


def _above(bound: Tensor, dtype: torch.dtype) -> Tensor:
    """Return bounds moved up by the margin of strict relations."""
    return bound.double() + strict_margin(bound, dtype)


def _property(
    template: Template, variables: tuple[str, ...], over: Sequence[Window], **parameters: Sequence[Tensor]
) -> Property:
    """Return a property from the values of each parameter by window, *C each."""
    stacked = {name: torch.stack(list(values), -1).double() for name, values in parameters.items()}
    return Property(template, variables, tuple(over), stacked)
