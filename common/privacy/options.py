"""Options `[privacy]`: noise that a run requests; a client's policy and ledger take precedence."""

import math
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from common.options import Options

Unit = Literal["none", "client", "record"]
MechanismName = Literal["gaussian", "laplace", "privunit"]
ResolvedTrust = Literal["local", "helpers"]
Accounting = Literal["auto", "plan", "filter"]
Trust = Literal["auto", "local", "helpers"]

MIN_CLIP = 1e-6
"""Smallest clip norm.

Gradients far below it have squares that float32 rounds to 0, so clipping would not bound them.
"""


def count_participations(rounds: int, cohort: float, planned: int = 0) -> int:
    """Return the number of rounds over which a client's budget is spread, at most all.

    Args:
        rounds: Number T of rounds.
        cohort: Share q of the clients that a round asks.
        planned: The number, if it is set; 0: T·q and two standard deviations.
    """
    expected = rounds * cohort
    return min(planned or math.ceil(expected + 2 * math.sqrt(expected * (1 - cohort))), rounds)


class PrivacyOptions(Options):
    """Differential privacy that a run guarantees to its clients."""

    unit: Unit = "none"
    """Unit of protection.

    `client`: everything a client sends is one clipped vector with noise (local DP, replace-one).
    `record`: noisy sums of clipped gradients of single records (DP-SGD, add-or-remove-one).
    """

    mechanism: MechanismName = "gaussian"
    """Mechanism of unit `client`.

    `gaussian`: L2 clip, Gaussian DP; `laplace`: L1 clip, pure ε; `privunit`: direction only, pure ε.
    """

    epsilon: float = Field(10.0, gt=0, allow_inf_nan=False)
    """Total ε of the run, for every client."""

    delta: float = Field(1e-5, gt=0, lt=1)
    """δ of the guarantee; pure mechanisms have δ = 0."""

    clip: float = Field(1.0, ge=MIN_CLIP, allow_inf_nan=False)
    """Maximum norm C of an upload (unit `client`) or of a record's gradient (unit `record`)."""

    normalise: bool = False
    """Scale shorter uploads up to norm C as well; `privunit` always does."""

    participations: int = Field(0, ge=0)
    """Number of rounds over which a client's budget is spread; after that it is not asked again.

    0: as many as few clients exceed, T·q + 2·√(T·q·(1 − q)), for cohorts of a share q of the clients."""

    accept_noise: bool = False
    """Train even if noise would leave nothing of the training.

    Such runs of unit `client` are refused otherwise."""

    sample: float = Field(0.5, gt=0, le=1)
    """Probability q with which a record takes part in a local step (unit `record`, Poisson sampling)."""

    accounting: Accounting = "auto"
    """Charge of noise on records (unit `record`).

    `plan`: a client's releases cost the same and are charged as a whole with the first one, by Opacus' PRV accountant.
    `filter`: each release is charged by itself, by Rényi divergences, and its cost may depend on earlier ones. `auto`:
    `plan` if the planner gives each round the same cost, else `filter`.
    """

    trust: Trust = "auto"
    """Party that the guarantee relies on.

    `local`: every client adds its own noise. `helpers`: clients send masked updates, the server learns their sum alone, and
    helpers add the noise to it. `auto`: `helpers` if enough of them are online and the method needs only sums, else
    `local`.
    """

    first_share: float = Field(0.5, gt=0, lt=1)
    """Share of the budget for the sums of the method `first`; the training has the rest."""

    metric_share: float = Field(0.0, ge=0, lt=1)
    """Share of ε's cost for summed metrics of the final model; 0: they are not summed under noise."""

    name_share: float = Field(0.1, ge=0, lt=1)
    """Share of ε's cost for names, in runs with `catalogue=federated`."""

    @cached_property
    def resolved_trust(self) -> ResolvedTrust:
        """Trust of a run that started; `auto` that nothing resolved is `local`."""
        return "helpers" if self.trust == "helpers" else "local"

    @field_validator("trust", mode="before")
    @classmethod
    def _refuse_pairwise(cls, value: Any) -> Any:
        if value == "pairwise":
            raise ValueError("not in this version; say helpers or local")
        return value

    @model_validator(mode="after")
    def _check_trust(self) -> Self:
        if self.trust == "helpers" and self.unit == "client" and self.mechanism != "gaussian":
            raise ValueError(
                f"mechanism={self.mechanism} is noise of one client's own; privacy.trust=helpers needs mechanism=gaussian"
            )
        return self
