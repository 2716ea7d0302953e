"""FedRule: federated rule recommendation with control variates against client drift (Algorithm 1, Eq 3)."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from common.methods.spec import Capabilities, MethodOptions, MethodSpec


class FedRule(MethodOptions):
    """Clients step along g̃ = ∇L_k − λδ_k and learn δ_k from how they differ from the mean."""

    name: ClassVar[str] = "fedrule"

    optimizer: Literal["sgd", "adam"] = "adam"
    lr: float = Field(0.01, gt=0)

    lam: float = Field(1.0, ge=0, lt=2)
    """λ of the graph encoder θ; 0 is FedAvg, stable below 2."""

    lam_predictor: float = Field(-1.0, lt=2)
    """λ of the predictor φ where it differs; negative means `lam`."""

    control: Literal["eq3", "grad_mean", "adam_literal"] = "grad_mean"
    """How δ_k is formed: from displacements (Eq 3, true under SGD), from mean gradients (equal to Eq 3 under SGD, right
    under Adam too, costs a second vector), or Eq 3 verbatim under Adam (the paper's letter; does not learn)."""

    server_optimizer: Literal["none", "adam"] = "none"
    """`none` is the paper's θ ← θ − Δ̄; `adam` feeds Δ̄ to Adam on the server."""

    server_lr: float = Field(0.003, gt=0)
    """ηₛ of the server's Adam."""

    beta1: float = Field(0.9, ge=0, lt=1)
    """β₁ of the server's Adam."""

    beta2: float = Field(0.99, ge=0, lt=1)
    """β₂ of the server's Adam."""

    tau: float = Field(1e-6, gt=0)
    """τ of the server's Adam."""

    def strength(self, parameter: str) -> float:
        """λ of the parameter of that name."""
        own = parameter.startswith("predictor.") and self.lam_predictor >= 0
        return self.lam_predictor if own else self.lam

    @model_validator(mode="after")
    def _control_fits_optimizer(self) -> Self:
        if self.optimizer == "adam" and self.control == "eq3":
            raise ValueError(
                "Eq 3 equates a displacement with a mean gradient, which local Adam breaks; set control=grad_mean, "
                "or control=adam_literal to reproduce the paper's letter"
            )
        if self.optimizer == "sgd" and self.control == "adam_literal":
            raise ValueError("control=adam_literal is Eq 3 under local Adam; with optimizer=sgd say control=eq3")
        return self

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(needs_gradient=self.control == "grad_mean", sum_only=True)


METHOD = MethodSpec(
    FedRule,
    "Rule recommendation with control variates against client drift",
    paper="arXiv 2211.06812",
    default_task="rules",
)
