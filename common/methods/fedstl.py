"""FedSTL: clusters by what clients' properties say, private heads, forecasts asked to obey (algorithms.md §3.5-3.7)."""

from typing import Literal

from pydantic import Field

from common.methods.clustered import Clustered


class FedSTL(Clustered):
    """Clients join the cluster whose forecasts violate their property least, and train its shared layers (Algorithms 1, 2)."""

    name: Literal["fedstl"] = "fedstl"

    lr: float = Field(0.1, gt=0)

    local_steps: int = Field(8, ge=1)

    clip_norm: float = Field(1.0, ge=0)

    weighting: Literal["uniform", "examples"] = "examples"

    cluster_steps: int = Field(2, ge=0)
    """κ, further steps of the shared layers under the cluster's property φ_j, made by the members in a second exchange;
    0 leaves it out and halves the uploads."""

    cluster_data: Literal["none", "shared_sample"] = "none"
    """What clusters are chosen by and polished on, beside clients' own data. `shared_sample`, for fidelity to the authors' code
    only: windows of training data that clients hand to the server in clear, where their owners' policies allow it."""

    sample_windows: int = Field(64, ge=1)
    """Most windows that a client hands over."""

    def steps(self, phase: str) -> int:
        """κ in the second exchange."""
        return self.cluster_steps if phase == "cluster" else self.local_steps
