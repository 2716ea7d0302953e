"""FedAvg (McMahan et al. 2017) and its server momentum."""

from typing import Literal

from pydantic import Field

from common.methods.server_step import ServerStep


class FedAvg(ServerStep):
    """θ ← θ − ηₛ·m with m ← βm + Δ̄; plain averaging at ηₛ = 1, β = 0. On rules this is the paper's FedGNN."""

    name: Literal["fedavg"] = "fedavg"

    momentum: float = Field(0.0, ge=0, lt=1)
    """β, server momentum (FedAvgM)."""
