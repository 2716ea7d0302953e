"""Options of ridge regression in closed form, from sums of statistics."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from common.methods.base import MethodOptions, MethodSpec
from common.tasks.options import Capabilities

STATISTICS = (
    "exact sums of statistics: a pair of things that one client alone has together stands in the sum, and the solution that"
    " clients get is computed from it; in plaintext, the row ids of each client name its pairs"
)
"""Uncovered channel of sums without noise."""


LEAST_STRENGTH = 1e-3
"""Smallest λ other than 0."""


class Ridge(MethodOptions):
    """Ridge regression in closed form: clients send statistics, the server solves, nothing is trained."""

    name: ClassVar[str] = "ridge"

    fixed_capabilities: ClassVar[Capabilities] = Capabilities(
        per_step=False,
        sum_only=True,
        row_wise=True,
        record_dp="has clients that make no gradient steps",
        closed_form=True,
    )

    strength: float = Field(0.0, ge=0)
    """Strength λ of the ridge, in the units of the task's statistics; 0: clients choose it.

    They choose by data that they hide from themselves, through one more sum of hits.
    """

    def uncovered(self) -> tuple[str, ...]:
        """Return the uncovered channels under these options."""
        return (STATISTICS,)

    @field_validator("strength")
    @classmethod
    def _check_strength(cls, strength: float) -> float:
        """Refuse a λ with which matrices in float32 are singular."""
        if 0 < strength < LEAST_STRENGTH:
            raise ValueError(f"a ridge of {strength:g} leaves singular matrices; set 0, or at least {LEAST_STRENGTH:g}")
        return strength

    @field_validator("weighting")
    @classmethod
    def _check_weighting(cls, weighting: Literal["uniform", "examples"]) -> Literal["uniform", "examples"]:
        """Refuse weights: statistics are added up."""
        if weighting == "examples":
            raise ValueError("statistics are added up without weights; remove training.weighting=examples")
        return weighting


METHOD = MethodSpec(
    Ridge, "Solve a ridge regression from sums of statistics, without training", paper="arXiv 1905.03375"
)
