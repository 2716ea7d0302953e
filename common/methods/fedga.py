"""FedGA: federated session recommendation with a gradient-aware server step (DRA and C-SME)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.fedopt import ServerAdaptive
from common.methods.spec import Capabilities, MethodSpec


class FedGA(ServerAdaptive):
    """θ ← θ − ηₛ m/(√v + τ), where v follows Δ'², the squared mean of |Δ_k| (algorithms.md §2.2–2.3)."""

    name: ClassVar[str] = "fedga"

    second_moment: Literal["saturated", "ramp", "quadratic", "adam", "yogi"] = "saturated"
    """How v follows Δ'². The paper's Eq 3 is known by its cases only; `saturated`, `ramp` and `quadratic` are readings of
    them, so a result says which one it used."""

    dra: bool = True
    """Δ' = mean |Δ_k|; without it Δ' = |Δ̄|, as in FedAdam and FedYogi."""

    lr: float = Field(1.0, gt=0)

    local_steps: int = Field(1, ge=1)

    clip_norm: float = Field(5.0, ge=0)

    weighting: Literal["uniform", "examples"] = "examples"

    server_lr: float = Field(0.03, gt=0)
    """ηₛ; DRA enlarges the denominator, so 1.5 to 2 times what FedAdam and FedYogi want."""

    tau: float = Field(1e-4, gt=0)
    """τ, floor of the denominator. The paper's 1e-3 is above √v of session models, which turns every rule into momentum."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits: the server takes |Δ_k| of every reply."""
        return Capabilities()


METHOD = MethodSpec(
    FedGA,
    "Divergence-resistant adaptive aggregation for session recommendation",
    paper="algorithms.md §2",
    default_task="sessions",
)
