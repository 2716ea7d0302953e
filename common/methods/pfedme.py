"""Options of pFedMe: personalized models by Moreau envelopes (Dinh et al. 2020)."""

from typing import ClassVar

from pydantic import Field

from common.methods.base import Capabilities, MethodOptions, MethodSpec


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


METHOD = MethodSpec(PFedMe, "Personalized models by Moreau envelopes", paper="arXiv 2006.08848")
