"""What methods that keep several models say about them."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.spec import Capabilities, MethodOptions, MethodSpec


class Clustered(MethodOptions):
    """K models, each the mean of the clients that are assigned to it."""

    clusters: int = Field(5, ge=1)
    """K."""

    assign: Literal["argmin", "capacity"] = "argmin"
    """Each client to the cluster that suits it best, or greedily over all (cluster, client) pairs with equal room in each
    cluster, as the authors' code does."""

    recluster_every: int = Field(1, ge=1)
    """m, rounds between two assignments of a client that takes part."""

    spread: float = Field(0.1, ge=0)
    """Standard deviation, relative to each layer's own, of the noise that tells the K models apart at first; without it the
    first assignment is a tie and one cluster takes all."""


class IFCA(Clustered):
    """Clusters by loss: a client joins the model with the lowest one on its data (Ghosh et al. 2020)."""

    name: ClassVar[str] = "ifca"

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(record_dp="asks which cluster's loss is least", own_model="trained", extra_releases=1)


METHOD = MethodSpec(
    IFCA, "One model per cluster; clients join the cluster with the lowest loss", paper="arXiv 2006.04088"
)
