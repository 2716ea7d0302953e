"""Options of FedSTL: clusters by STL properties, private heads, property loss (algorithms.md §3)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from common.methods.base import Capabilities, MethodSpec
from common.methods.clustered import Clustered
from common.privacy.claims import PROPERTIES

if TYPE_CHECKING:
    from common.tasks.spec import ModelVariant, TaskOptions

RANGES = ("calibrated", "weekday", "paper")
"""Properties of the traffic task that are ranges of single readings."""

WINDOWS = "windows of training data, sent to the server in plaintext (shared_sample)"
"""Uncovered channel of runs with `cluster-data=shared_sample`."""


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

    cluster_data: Literal["none", "shared_sample"] = "none"
    """Data of the assignment and of the κ steps. `none`: the clients' own data. `shared_sample`, to
    reproduce the authors' code only: training windows that clients send to the server in plaintext, if their policies
    allow it."""

    sample_windows: int = Field(64, ge=1)
    """Maximum number of windows that a client sends under `cluster-data=shared_sample`."""

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
            replies_reason=self._replies_reason,
            extra_releases=2 if self.cluster_steps else 1,
            plaintext=frozenset({"allow-shared-sample"} if self._shares_windows else ()),
            shared_windows=self.sample_windows if self._shares_windows else 0,
        )

    def check(self, task: "TaskOptions", model: "ModelVariant") -> None:
        """Raise ValueError for windows without a range property, or `criterion=loss` that needs properties."""
        if self.criterion == "loss" and (self.cluster_steps or self._shares_windows):
            raise ValueError(
                "algorithm.fedstl.criterion=loss sends no properties; set cluster-steps=0 and cluster-data=none"
            )
        if self._shares_windows and getattr(task, "property", "") not in RANGES:
            raise ValueError(
                "algorithm.fedstl.cluster-data=shared_sample needs a range property; set tasks.traffic.property=calibrated"
            )

    def uncovered(self) -> tuple[str, ...]:
        """Return the uncovered channels under these options."""
        properties = (PROPERTIES,) if self.criterion == "property" else ()
        return (WINDOWS, *properties) if self._shares_windows else properties

    @property
    def _replies_reason(self) -> str:
        if self._shares_windows:
            return "reads training windows of single clients (cluster-data=shared_sample)"
        return f"judges single clients' {'properties' if self.criterion == 'property' else 'losses'}"

    @property
    def _shares_windows(self) -> bool:
        return self.cluster_data == "shared_sample"


METHOD = MethodSpec(
    FedSTL,
    "Forecasting guided by signal temporal logic; clusters by properties",
    paper="algorithms.md §3",
    default_task="traffic",
)
