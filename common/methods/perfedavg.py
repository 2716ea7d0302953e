"""Options of Per-FedAvg: a shared model that each client adapts (Fallah et al. 2020)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.base import Capabilities, MethodOptions, MethodSpec


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


METHOD = MethodSpec(PerFedAvg, "A shared model that each client adapts in a few steps", paper="arXiv 2002.07948")
