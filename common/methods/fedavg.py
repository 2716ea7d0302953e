"""Options of FedAvg (McMahan et al. 2017) with server momentum."""

from typing import ClassVar

from pydantic import Field

from common.methods.server_step import ServerStep
from common.methods.spec import Capabilities, MethodSpec


class FedAvg(ServerStep):
    """FedAvg: θ ← θ − ηₛ·m with m ← βm + Δ̄.

    Plain averaging is ηₛ = 1, β = 0. On task rules this is the FedGNN baseline of the FedRule paper.
    """

    name: ClassVar[str] = "fedavg"

    momentum: float = Field(0.0, ge=0, lt=1)
    """Server momentum β (FedAvgM)."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(row_wise=True, sum_only=True)


METHOD = MethodSpec(FedAvg, "Average client updates, with optional server momentum", paper="arXiv 1602.05629")
