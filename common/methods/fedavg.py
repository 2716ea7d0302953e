"""FedAvg (McMahan et al. 2017) and its server momentum."""

from typing import ClassVar

from pydantic import Field

from common.methods.server_step import ServerStep
from common.methods.spec import Capabilities, MethodSpec


class FedAvg(ServerStep):
    """θ ← θ − ηₛ·m with m ← βm + Δ̄; plain averaging at ηₛ = 1, β = 0. On rules this is the paper's FedGNN."""

    name: ClassVar[str] = "fedavg"

    momentum: float = Field(0.0, ge=0, lt=1)
    """β, server momentum (FedAvgM)."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(row_wise=True, sum_only=True)


METHOD = MethodSpec(FedAvg, "Average client updates, with optional server momentum", paper="arXiv 1602.05629")
