"""Options of adaptive federated optimization (Reddi et al. 2021): FedAdam, FedYogi and FedAdagrad."""

from typing import ClassVar

from pydantic import Field

from common.methods.server_step import ServerStep
from common.methods.spec import Capabilities, MethodSpec


class ServerAdaptive(ServerStep):
    """Options of adaptive server steps: θ ← θ − ηₛ m/(√v + τ) with moments m, v of the mean update Δ̄.

    There is no bias correction; v₀ = τ².
    """

    lr: float = Field(0.1, gt=0)

    server_lr: float = Field(0.003, gt=0)

    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay β₁ of the first moment."""

    beta2: float = Field(0.99, ge=0, lt=1)
    """Decay β₂ of the second moment."""

    tau: float = Field(1e-6, gt=0)
    """Floor τ of the denominator. The paper's 1e-3 exceeds most mean updates here; parameters then hardly
    change."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(row_wise=True, sum_only=True)


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
