"""Options of FedSTL: clusters by STL properties, private heads, property loss (algorithms.md §3)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.base import MethodSpec
from common.methods.clustered import Clustered
from common.privacy.claims import PROPERTIES
from common.tasks.options import Capabilities, TaskOptions


class FedSTL(Clustered):
    """FedSTL: a client joins the cluster whose forecasts violate its property least (Algorithms 1, 2).

    It then trains the shared layers of that cluster.
    """

    name: ClassVar[str] = "fedstl"

    lr: float = Field(0.1, gt=0)

    local_steps: int = Field(8, ge=1)

    clip_norm: float = Field(1.0, ge=0)

    weighting: Literal["uniform", "examples"] = "examples"

    cluster_steps: int = Field(2, ge=0)
    """Number κ of further steps of the shared layers under the cluster's property φ_j, in a second
    exchange with its clients. 0 omits the exchange and halves the uploads."""

    criterion: Literal["property", "loss"] = "property"
    """Score by which a client joins a cluster: violation L_p of its own property, or loss as in IFCA.

    Under `loss` clients send no property, so it needs `cluster-steps=0`.
    """

    def steps(self, phase: str) -> int:
        """Return τ; in the second exchange, κ."""
        return self.cluster_steps if phase == "cluster" else self.local_steps

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(
            tasks=frozenset({"traffic"}),
            tasks_reason="clusters clients by properties of time series",
            private_layers="head",
            own_model="trained",
            replies_reason=f"judges single clients' {'properties' if self.criterion == 'property' else 'losses'}",
            extra_releases=2 if self.cluster_steps else 1,
        )

    def check(self, task: TaskOptions, model: str) -> None:
        """Raise ValueError for steps under a property where `criterion=loss` sends none."""
        if self.criterion == "loss" and self.cluster_steps:
            raise ValueError("algorithm.fedstl.criterion=loss sends no properties; set cluster-steps=0")

    def uncovered(self) -> tuple[str, ...]:
        """Return the uncovered channels under these options."""
        return (PROPERTIES,) if self.criterion == "property" else ()


METHOD = MethodSpec(
    FedSTL,
    "Forecasting guided by signal temporal logic; clusters by properties",
    paper="algorithms.md §3",
    default_task="traffic",
)
