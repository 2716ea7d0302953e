"""FedSTL: clusters by what clients' properties say, private heads, forecasts asked to obey (algorithms.md §3.5-3.7)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from common.methods.clustered import Clustered
from common.methods.spec import Capabilities, MethodSpec

if TYPE_CHECKING:
    from common.tasks.spec import ModelVariant, TaskOptions

PROPERTIES = "parameters of inferred properties"

WINDOWS = "windows of training data, sent to the server in plaintext (shared_sample)"


class FedSTL(Clustered):
    """Clients join the cluster whose forecasts violate their property least, and train its shared layers (Algorithms 1, 2)."""

    name: ClassVar[str] = "fedstl"

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

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(
            tasks=frozenset({"traffic"}),
            tasks_reason="clusters clients by properties of time series",
            private_layers="head",
            own_model="trained",
            extra_releases=2 if self.cluster_steps else 1,
            plaintext=frozenset({"allow-shared-sample"} if self._shares_windows else ()),
            shared_windows=self.sample_windows if self._shares_windows else 0,
        )

    def check(self, task: "TaskOptions", model: "ModelVariant") -> None:
        """Accept the options of the task."""
        if self._shares_windows and getattr(task, "property", "") == "difference":
            raise ValueError("algorithm.fedstl.cluster-data=shared_sample judges ranges; choose another property")

    def uncovered(self) -> tuple[str, ...]:
        """Return channels that no privacy claim covers under these options."""
        return (WINDOWS, PROPERTIES) if self._shares_windows else (PROPERTIES,)

    @property
    def _shares_windows(self) -> bool:
        return self.cluster_data == "shared_sample"


METHOD = MethodSpec(
    FedSTL,
    "Forecasting guided by signal temporal logic; clusters by properties",
    paper="algorithms.md §3",
    default_task="traffic",
)
