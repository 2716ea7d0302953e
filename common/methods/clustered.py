"""Options of clustered federated learning and of IFCA, and the choice of a cluster by its loss."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.base import MethodOptions, MethodSpec
from common.tasks.options import Capabilities


class Clustered(MethodOptions):
    """Options of clustered methods: K models, each the mean of the clients assigned to it."""

    clusters: int = Field(5, ge=1)
    """Number K of clusters."""

    assign: Literal["argmin", "capacity"] = "argmin"
    """Rule of the assignment. `argmin`: each client joins the cluster with the lowest score. `capacity`:
    greedy over all (cluster, client) pairs, with equal room in each cluster, as in the authors' code."""

    recluster_every: int = Field(1, ge=1)
    """Number m of rounds between two assignments of a client in the cohort."""

    spread: float = Field(0.1, ge=0)
    """Standard deviation of the random perturbation of the K initial models, relative to each layer's own.
    At 0 the first assignment is a tie and one cluster takes all clients."""


class IFCA(Clustered):
    """IFCA: a client joins the model with the lowest loss on its data (Ghosh et al. 2020)."""

    name: ClassVar[str] = "ifca"

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(
            record_dp="requests each cluster's loss",
            own_model="trained",
            replies_reason="needs the losses of single clients (assign=capacity)",
            clusters=self.clusters if self.assign == "argmin" else 0,
            choice_rounds=self.recluster_every,
            extra_releases=1,
        )


METHOD = MethodSpec(
    IFCA, "One model per cluster; clients join the cluster with the lowest loss", paper="arXiv 2006.04088"
)
