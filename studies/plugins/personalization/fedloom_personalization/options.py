"""Options of pFedMe (Dinh et al. 2020) and of Per-FedAvg (Fallah et al. 2020)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.api import Capabilities, MethodOptions, MethodSpec


class PFedMe(MethodOptions):
    """pFedMe: each θ_i descends on L_i(θ) + λ/2‖θ − w‖², and w moves towards the mean of the θ_i."""

    name: ClassVar[str] = "pfedme"

    lam: float = Field(15.0, gt=0)
    """Weight λ of the proximal term of the personalized model, towards w; an explicit step needs `lr` <
    2/λ."""

    lr: float = Field(0.05, gt=0)

    local_steps: int = Field(10, ge=1)
    """Number of steps that solve for θ_i; w moves once per round, R = 1."""

    envelope_lr: float = Field(0.05, gt=0)
    """Step size η of w_i ← w − ηλ(w − θ_i); with ηλ = 1 a client sends its personalized model."""

    beta: float = Field(1.0, gt=0)
    """Factor β of the server step w ← (1 − β)w + β·mean w_i."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(per_step=False, own_model="trained", sum_only=True)


class PerFedAvg(MethodOptions):
    """Per-FedAvg: FedAvg on F_k(w) = L_k(w − α∇L_k(w)), the loss after one local step (Algorithm 1).

    A local step computes w̃ = w − α∇L_k(w; D), then w ← w − β∇F_k; `lr` is β. If a task samples mini-batches, D and D′ are
    separate samples; otherwise both are all data of the client.
    """

    name: ClassVar[str] = "perfedavg"

    alpha: float = Field(0.05, gt=0)
    """Step size α from the shared model to the adapted model, by plain gradient descent; below 1/L for an
    L-smooth loss. The networks of task markets have small gradients; suitable values there are 30 to 100."""

    adapt_steps: int = Field(1, ge=1)
    """Number of steps of size α from the finished model to a client's adapted model; training assumes 1."""

    variant: Literal["first-order", "hessian-free"] = "first-order"
    """Approximation of ∇F_k = (I − α∇²L_k(w))∇L_k(w̃; D′). `first-order`: without the second term.
    `hessian-free`: ∇²L_k·g from two more gradients (§5 of the paper)."""

    delta: float = Field(1e-3, gt=0)
    """Step δ of the finite difference (∇L_k(w + δg; D″) − ∇L_k(w − δg; D″)) / 2δ of `hessian-free`; small
    values amplify float32 rounding."""

    def steps(self, phase: str) -> int:
        """Return τ; `adapt-steps` in the phase that adapts the finished model."""
        return self.adapt_steps if phase == "adapt" else self.local_steps

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(record_dp="computes several gradients per step", own_model="adapted", sum_only=True)


PFEDME = MethodSpec(PFedMe, "Personalized models by Moreau envelopes", paper="arXiv 2006.08848")
PERFEDAVG = MethodSpec(PerFedAvg, "A shared model that each client adapts in a few steps", paper="arXiv 2002.07948")
