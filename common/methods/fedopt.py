"""Adaptive federated optimisation (Reddi et al. 2021): FedAdam, FedYogi and FedAdagrad."""

from typing import ClassVar

from pydantic import Field

from common.methods.server_step import ServerStep
from common.methods.spec import Capabilities, MethodSpec


class ServerAdaptive(ServerStep):
    """θ ← θ − ηₛ m/(√v + τ), with m, v moments of the mean update Δ̄; no bias correction, v₀ = τ²."""

    lr: float = Field(0.1, gt=0)

    server_lr: float = Field(0.003, gt=0)

    beta1: float = Field(0.9, ge=0, lt=1)
    """β₁, decay of the first moment."""

    beta2: float = Field(0.99, ge=0, lt=1)
    """β₂, decay of the second moment."""

    tau: float = Field(1e-6, gt=0)
    """τ, floor of the denominator. The paper's 1e-3 is larger than most mean updates here, and then hardly anything moves."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(row_wise=True, sum_only=True)


class FedAdam(ServerAdaptive):
    """v ← β₂v + (1−β₂)Δ̄²."""

    name: ClassVar[str] = "fedadam"


class FedYogi(ServerAdaptive):
    """v ← v − (1−β₂)Δ̄²·sign(v − Δ̄²)."""

    name: ClassVar[str] = "fedyogi"


class FedAdagrad(ServerAdaptive):
    """v ← v + Δ̄²; β₂ has no part in it."""

    name: ClassVar[str] = "fedadagrad"

    server_lr: float = Field(0.03, gt=0)
    """ηₛ; ten times FedAdam's, whose v holds 1 − β₂ = 1/100 of what Adagrad's does in the first rounds."""


FEDADAM = MethodSpec(FedAdam, "Adam on the server", paper="arXiv 2003.00295")

FEDYOGI = MethodSpec(FedYogi, "Yogi on the server", paper="arXiv 2003.00295")

FEDADAGRAD = MethodSpec(FedAdagrad, "Adagrad on the server", paper="arXiv 2003.00295")
