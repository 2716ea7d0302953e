"""FedProx (Li et al. 2020)."""

from typing import Literal

from pydantic import Field

from common.methods.local_training import LocalTraining


class FedProx(LocalTraining):
    """FedAvg whose clients minimise L_k(θ) + μ/2‖θ − θ^c‖²."""

    name: Literal["fedprox"] = "fedprox"

    mu: float = Field(0.01, ge=0)
    """μ, pull towards the round's model."""
