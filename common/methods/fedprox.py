"""FedProx (Li et al. 2020)."""

from typing import ClassVar

from pydantic import Field

from common.methods.spec import Capabilities, MethodOptions, MethodSpec


class FedProx(MethodOptions):
    """FedAvg whose clients minimise L_k(θ) + μ/2‖θ − θ^c‖²."""

    name: ClassVar[str] = "fedprox"

    mu: float = Field(0.01, ge=0)
    """μ, pull towards the round's model."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(row_wise=True, sum_only=True)


METHOD = MethodSpec(FedProx, "FedAvg with a proximal term against client drift", paper="arXiv 1812.06127")
