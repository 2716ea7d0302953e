"""Formula templates of FedSTL, Table 1 (algorithms.md §3.2).

The paper prints the windows as [i, i+t]; disjoint windows are the default here, as in the authors' code (`windows`).
"""

from collections.abc import Sequence

from common.errors import ConfigError
from common.logic.formula import Always, And, Eventually, Formula, Implies, Until, Variable, conjunction

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
    """Build template 1: ⋀_i □_[i,j] (x ≤ a_i ∧ x ≥ b_i)."""
    x = Variable(variable)
    return conjunction([Always(i, j, And((x <= a, x >= b))) for (i, j), a, b in zip(over, upper, lower, strict=True)])


def existence(variable: str, over: Sequence[Window], upper: Sequence[float], lower: Sequence[float]) -> Formula:
    """Build template 2: ⋀_i ◇_[i,j] (x ≤ a_i ∧ x ≥ b_i)."""
    x = Variable(variable)
    return conjunction(
        [Eventually(i, j, And((x <= a, x >= b))) for (i, j), a, b in zip(over, upper, lower, strict=True)]
    )


def until(
    variable: str, over: Sequence[Window], held: Sequence[float], met: Sequence[float], literal: bool = False
) -> Formula:
    """Build template 3: ⋀_i (x < a_i) U_[i,j] (x < b_i), `held` the a_i and `met` the b_i.

    With `literal`, each conjunct covers x from step 0 on; by default conjunct i is evaluated at step i, with U_[0,j−i].
    """
    x = Variable(variable)
    parts: list[Formula] = []
    for (i, j), a, b in zip(over, held, met, strict=True):
        parts.append(Until(i, j, x < a, x < b) if literal else Always(i, i, Until(0, j - i, x < a, x < b)))
    return conjunction(parts)


def intra_task(first: str, second: str, over: Sequence[Window], bounds: Sequence[float]) -> Formula:
    """Build template 4: ⋀_i □_[i,j] (x₁ − x₂ > a_i)."""
    difference = Variable(first) - Variable(second)
    return conjunction([Always(i, j, difference > a) for (i, j), a in zip(over, bounds, strict=True)])


def implication(variable: str, span: Window, delay: Window, trigger: float, response: float) -> Formula:
    """Build template 5: □_[t1,t2] (x ≥ a₁ → ◇_[t3,t4] x ≥ a₂)."""
    return nested(variable, variable, span, delay, trigger, response)


def nested(first: str, second: str, span: Window, delay: Window, trigger: float, response: float) -> Formula:
    """Build template 6: □_[t1,t2] (x₁ ≥ a → ◇_[t3,t4] x₂ ≥ b)."""
    reaction = Eventually(*delay, Variable(second) >= response)
    return Always(*span, Implies(Variable(first) >= trigger, reaction))


def eventualities(variable: str, over: Sequence[Window], bounds: Sequence[float]) -> Formula:
    """Build template 7: ◇_W₁ (x ≥ a₁) ∧ … ∧ ◇_W_n (x ≥ a_n)."""
    x = Variable(variable)
    return conjunction([Eventually(i, j, x >= a) for (i, j), a in zip(over, bounds, strict=True)])
