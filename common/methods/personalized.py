"""Options of methods with a personalized model per client: FedRep, Ditto and local training."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from common.methods.base import MethodOptions, MethodSpec
from common.tasks.options import Capabilities


class FedRep(MethodOptions):
    """FedRep: averaged shared layers, and a private head that stays on the client (Collins et al. 2021)."""

    name: ClassVar[str] = "fedrep"
    fixed_capabilities: ClassVar[Capabilities] = Capabilities(private_layers="head", sum_only=True)

    head_steps: int = Field(0, ge=0)
    """Number of first local steps that train the private head alone; the remaining steps train the shared
    layers alone. 0 trains both together, which is FedPer (Arivazhagan et al. 2019)."""

    @model_validator(mode="after")
    def _check_head_steps(self) -> Self:
        if self.head_steps >= self.local_steps:
            raise ValueError(
                f"head-steps = {self.head_steps} leaves no step for the shared layers; set it below local-steps ="
                f" {self.local_steps}"
            )
        return self


class Ditto(MethodOptions):
    """Ditto: FedAvg, and on each client a model v_k that minimizes L_k(v) + λ/2‖v − θ‖² (Li et al. 2021)."""

    name: ClassVar[str] = "ditto"
    fixed_capabilities: ClassVar[Capabilities] = Capabilities(own_model="beside", sum_only=True)

    pull: float = Field(1.0, ge=0)
    """Weight λ of the proximal term of the personalized model, towards the global model."""


class Local(MethodOptions):
    """Local training: every client trains alone and sends no parameters."""

    name: ClassVar[str] = "local"
    fixed_capabilities: ClassVar[Capabilities] = Capabilities(private_layers="all", sum_only=True)


FEDREP = MethodSpec(FedRep, "Shared layers by averaging, a private head per client", paper="arXiv 2102.07078")

DITTO = MethodSpec(Ditto, "FedAvg, and a personalized model on each client", paper="arXiv 2012.04221")

LOCAL = MethodSpec(Local, "Train every client alone")
