"""Options of ridge regression in closed form, from sums of statistics."""

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from common.methods.base import MethodOptions, MethodSpec
from common.tasks.options import Capabilities

STATISTICS = (
    "exact sums of statistics: a pair of things that only one client has can be read from the sum, and from the solution that"
    " clients get; row ids, which each client sends in plaintext, name its pairs"
)
"""Uncovered channel of sums without noise."""

RARE = (
    "sums of statistics of {least} or more clients: of rows that fewer have, clients get nothing, if all clients report"
    " truthfully which rows they have; numbers of the clients of each row reach the server, and in plaintext the rows of each"
)
"""Uncovered channel of sums without noise that leave out rare rows."""

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

    min_count: int = Field(0, ge=0, le=100_000)
    """Smallest number of clients with an item or a pair in the sums; 0: one is enough.

    Items and pairs of fewer clients are left out of the solution. Each row of a client's statistics has one number more, 1.
    """

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return replace(self.fixed_capabilities, min_count=self.min_count)

    def uncovered(self) -> tuple[str, ...]:
        """Return the uncovered channels under these options."""
        return (RARE.format(least=self.min_count) if self.min_count > 1 else STATISTICS,)

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
