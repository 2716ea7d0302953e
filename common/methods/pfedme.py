"""pFedMe: personal models by Moreau envelopes (Dinh et al. 2020)."""

from typing import ClassVar

from pydantic import Field

from common.methods.spec import Capabilities, MethodOptions, MethodSpec


class PFedMe(MethodOptions):
    """Each client's own θ_i descends on L_i(θ) + λ/2‖θ − w‖², and w moves towards the clients' own models."""

    name: ClassVar[str] = "pfedme"

    lam: float = Field(15.0, gt=0)
    """λ, pull of a client's own model towards w; an explicit step needs `lr` < 2/λ."""

    lr: float = Field(0.05, gt=0)

    local_steps: int = Field(10, ge=1)
    """Steps that solve for θ_i; w moves once a round, R = 1."""

    envelope_lr: float = Field(0.05, gt=0)
    """η of w_i ← w − ηλ(w − θ_i); with ηλ = 1 a client sends its own model."""

    beta: float = Field(1.0, gt=0)
    """β of the server's step w ← (1 − β)w + β·mean w_i."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(own_model="trained", sum_only=True)


METHOD = MethodSpec(PFedMe, "Personalized models by Moreau envelopes", paper="arXiv 2006.08848")
