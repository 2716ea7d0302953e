"""Per-FedAvg: a shared model that a step of one's own makes one's own (Fallah et al. 2020)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.spec import Capabilities, MethodOptions, MethodSpec


class PerFedAvg(MethodOptions):
    """FedAvg on F_k(w) = L_k(w − α∇L_k(w)), the loss after one local step (Fallah et al. 2020, Algorithm 1).

    A local step takes two, w̃ = w − α∇L_k(w; D) and w ← w − β∇F_k, where `lr` is β. Where a task draws what a step learns
    from, D and D′ are draws of their own; else both are all of a client's data.
    """

    name: ClassVar[str] = "perfedavg"

    alpha: float = Field(0.05, gt=0)
    """α, step from the shared model to a client's own, always by plain descent; smaller than 1/L for an L-smooth loss. The
    networks of markets, with small gradients, want 30 to 100."""

    adapt_steps: int = Field(1, ge=1)
    """Steps of size α from the finished model to a client's own; the training is for one."""

    variant: Literal["first-order", "hessian-free"] = "first-order"
    """∇F_k = (I − α∇²L_k(w))∇L_k(w̃; D′): without its second term, or with ∇²L_k·g from two more gradients (their §5)."""

    delta: float = Field(1e-3, gt=0)
    """δ of these, (∇L_k(w + δg; D″) − ∇L_k(w − δg; D″)) / 2δ; too small a one leaves only float32's rounding."""

    def steps(self, phase: str) -> int:
        """As many as `adapt-steps` where a client makes the finished model its own."""
        return self.adapt_steps if phase == "adapt" else self.local_steps

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(record_dp="takes several gradients a step", own_model="adapted", sum_only=True)


METHOD = MethodSpec(PerFedAvg, "A shared model that each client adapts in a few steps", paper="arXiv 2002.07948")
