"""Options of FedGA: session recommendation with a gradient-aware server step (DRA and C-SME)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.fedopt import ServerAdaptive
from common.methods.spec import Capabilities, MethodSpec


class FedGA(ServerAdaptive):
    """FedGA: θ ← θ − ηₛ m/(√v + τ), where v follows the square of Δ' = mean |Δ_k| (algorithms.md §2)."""

    name: ClassVar[str] = "fedga"

    second_moment: Literal["saturated", "ramp", "quadratic", "adam", "yogi"] = "saturated"
    """Update rule of v. The paper states only the cases of its Eq 3; `saturated`, `ramp` and `quadratic`
    are three functions with these cases. `adam` and `yogi` are the rules of FedAdam and FedYogi."""

    dra: bool = True
    """True for Δ' = mean |Δ_k| (DRA); False for Δ' = |Δ̄|, as in FedAdam and FedYogi."""

    diagnostics: bool = False
    """Record agreement of clients, cases of C-SME and the share below τ in each round."""

    lr: float = Field(1.0, gt=0)

    local_steps: int = Field(1, ge=1)

    clip_norm: float = Field(5.0, ge=0)

    weighting: Literal["uniform", "examples"] = "examples"

    server_lr: float = Field(0.03, gt=0)
    """Server step size ηₛ. DRA enlarges the denominator; suitable values are 1.5 to 2 times those of
    FedAdam and FedYogi."""

    tau: float = Field(1e-4, gt=0)
    """Floor τ of the denominator. The paper's 1e-3 exceeds √v of session models; every rule then equals
    momentum."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities; DRA and `diagnostics` need the sum of |Δ_k| beside that of Δ_k."""
        return Capabilities(sum_only=True, needs_magnitude=self.dra or self.diagnostics)


METHOD = MethodSpec(
    FedGA,
    "Divergence-resistant adaptive aggregation for session recommendation",
    paper="algorithms.md §2",
    default_task="sessions",
)
