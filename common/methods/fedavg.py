"""Options of methods with one averaged model: FedAvg, FedProx, adaptive servers, FedGA."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.base import MethodOptions, MethodSpec, ServerStep
from common.tasks.options import Capabilities


class FedAvg(ServerStep):
    """FedAvg: θ ← θ − ηₛ·m with m ← βm + Δ̄.

    Plain averaging is ηₛ = 1, β = 0. On task rules this is the FedGNN baseline of the FedRule paper.
    """

    name: ClassVar[str] = "fedavg"
    fixed_capabilities: ClassVar[Capabilities] = Capabilities(row_wise=True, sum_only=True)

    momentum: float = Field(0.0, ge=0, lt=1)
    """Server momentum β (FedAvgM)."""


FEDAVG = MethodSpec(FedAvg, "Average client updates, with optional server momentum", paper="arXiv 1602.05629")


class FedProx(MethodOptions):
    """FedProx: FedAvg with the local objective L_k(θ) + μ/2‖θ − θ^c‖²."""

    name: ClassVar[str] = "fedprox"
    fixed_capabilities: ClassVar[Capabilities] = Capabilities(row_wise=True, sum_only=True)

    mu: float = Field(0.01, ge=0)
    """Weight μ of the proximal term, towards the round's model."""


FEDPROX = MethodSpec(FedProx, "FedAvg with a proximal term against client drift", paper="arXiv 1812.06127")


class ServerAdaptive(ServerStep):
    """Options of adaptive server steps: θ ← θ − ηₛ m/(√v + τ) with moments m, v of the mean update Δ̄.

    There is no bias correction; v₀ = τ².
    """

    fixed_capabilities: ClassVar[Capabilities] = Capabilities(row_wise=True, sum_only=True)

    lr: float = Field(0.1, gt=0)

    server_lr: float = Field(0.003, gt=0)

    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay β₁ of the first moment."""

    beta2: float = Field(0.99, ge=0, lt=1)
    """Decay β₂ of the second moment."""

    tau: float = Field(1e-6, gt=0)
    """Floor τ of the denominator. The paper's 1e-3 exceeds most mean updates here; parameters then hardly
    change."""


class FedAdam(ServerAdaptive):
    """FedAdam: v ← β₂v + (1−β₂)Δ̄²."""

    name: ClassVar[str] = "fedadam"


class FedYogi(ServerAdaptive):
    """FedYogi: v ← v − (1−β₂)Δ̄²·sign(v − Δ̄²)."""

    name: ClassVar[str] = "fedyogi"


class FedAdagrad(ServerAdaptive):
    """FedAdagrad: v ← v + Δ̄²; β₂ has no effect."""

    name: ClassVar[str] = "fedadagrad"

    server_lr: float = Field(0.03, gt=0)
    """Server step size ηₛ, ten times that of FedAdam: in the first rounds, FedAdam's v is 1 − β₂ = 1/100
    of Adagrad's."""


FEDADAM = MethodSpec(FedAdam, "Adam on the server", paper="arXiv 2003.00295")

FEDYOGI = MethodSpec(FedYogi, "Yogi on the server", paper="arXiv 2003.00295")

FEDADAGRAD = MethodSpec(FedAdagrad, "Adagrad on the server", paper="arXiv 2003.00295")


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


FEDGA = MethodSpec(
    FedGA,
    "Divergence-resistant adaptive aggregation for session recommendation",
    paper="algorithms.md §2",
    default_task="sessions",
)
