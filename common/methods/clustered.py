"""What methods that keep several models say about them."""

from typing import Literal

from pydantic import Field

from common.methods.local_training import LocalTraining


class Clustered(LocalTraining):
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

    name: Literal["ifca"] = "ifca"
