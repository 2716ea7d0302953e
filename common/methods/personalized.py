"""Methods that leave each client a model of its own: FedRep, Ditto, and training alone."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from common.methods.spec import Capabilities, MethodOptions, MethodSpec


class FedRep(MethodOptions):
    """Shared layers by averaging, a private head that never leaves (Collins et al. 2021)."""

    name: ClassVar[str] = "fedrep"

    head_steps: int = Field(0, ge=0)
    """The first of `local-steps`, in which only the head moves; in the others only the shared layers do. 0 trains both
    together, which is FedPer (Arivazhagan et al. 2019)."""

    @model_validator(mode="after")
    def _shared_layers_move(self) -> Self:
        if self.head_steps >= self.local_steps:
            raise ValueError(
                f"head-steps {self.head_steps} leaves no step to the shared layers; local-steps is {self.local_steps}"
            )
        return self

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(private_layers="head", sum_only=True)


class Ditto(MethodOptions):
    """FedAvg, and beside it on each client a model v_k that minimises L_k(v) + λ/2‖v − θ‖² (Li et al. 2021)."""

    name: ClassVar[str] = "ditto"

    pull: float = Field(1.0, ge=0)
    """λ, pull of a client's own model towards the global one."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(own_model="beside", sum_only=True)


class Local(MethodOptions):
    """Every client trains alone; nothing it learns leaves it."""

    name: ClassVar[str] = "local"

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(private_layers="all", sum_only=True)


FEDREP = MethodSpec(FedRep, "Shared layers by averaging, a private head per client", paper="arXiv 2102.07078")

DITTO = MethodSpec(Ditto, "FedAvg, and a personalized model beside it on each client", paper="arXiv 2012.04221")

LOCAL = MethodSpec(Local, "Train every client alone")
