"""Options of FedRule: control variates against client drift (Algorithm 1, Eq 3)."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from common.methods.base import MethodOptions, MethodSpec
from common.tasks.options import Capabilities

ANEW = "control.anew"
"""Array beside d̄ in the broadcast of a round after which δ_k is d_k − d̄ alone."""


class FedRule(MethodOptions):
    """FedRule: local steps along g̃ = ∇L_k − λδ_k; δ_k sums the differences of d_k from its mean d̄."""

    name: ClassVar[str] = "fedrule"

    optimizer: Literal["sgd", "adam"] = "adam"
    lr: float = Field(0.01, gt=0)

    lam: float = Field(1.0, ge=0, lt=2)
    """Strength λ of the control variate of the graph encoder θ; 0 is FedAvg, values below 2 are stable."""

    lam_predictor: float = Field(-1.0, lt=2)
    """Strength λ for the predictor φ; negative: the same as `lam`."""

    control: Literal["eq3", "grad_mean", "adam_literal"] = "grad_mean"
    """Source of the control variate δ_k. `eq3`: displacements (Eq 3), exact under SGD. `grad_mean`: mean
    gradients, equal to Eq 3 under SGD and correct under Adam; clients send a second vector. `adam_literal`: Eq 3 under
    Adam as the paper writes it; it does not learn."""

    server_optimizer: Literal["none", "adam"] = "none"
    """Server step: `none` is the paper's θ ← θ − Δ̄; `adam` is Adam on Δ̄."""

    server_lr: float = Field(0.003, gt=0)
    """Step size ηₛ of the server's Adam."""

    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay β₁ of the first moment of the server's Adam."""

    beta2: float = Field(0.99, ge=0, lt=1)
    """Decay β₂ of the second moment of the server's Adam."""

    tau: float = Field(1e-6, gt=0)
    """Floor τ of the denominator of the server's Adam."""

    def strength(self, parameter: str) -> float:
        """Return λ of a parameter, by its name."""
        is_separate = parameter.startswith("predictor.") and self.lam_predictor >= 0
        return self.lam_predictor if is_separate else self.lam

    @model_validator(mode="after")
    def _check_control(self) -> Self:
        if self.optimizer == "adam" and self.control == "eq3":
            raise ValueError(
                "control=eq3 equates displacements with mean gradients, which local Adam breaks; set control=grad_mean,"
                " or control=adam_literal to reproduce the paper's equation"
            )
        if self.optimizer == "sgd" and self.control == "adam_literal":
            raise ValueError(
                "control=adam_literal is Eq 3 under local Adam; set training.optimizer=adam or control=eq3"
            )
        return self

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(needs_gradient=self.control == "grad_mean", sum_only=True, moves_all_rows=True)


METHOD = MethodSpec(
    FedRule,
    "Rule recommendation with control variates against client drift",
    paper="arXiv 2211.06812",
    default_task="rules",
)
