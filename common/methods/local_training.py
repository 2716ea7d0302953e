"""Options of local training, common to all methods."""

from typing import Literal

from pydantic import Field

from common.options import Options


class LocalTraining(Options):
    """Options of local gradient descent, common to all methods."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    """Optimizer of the local steps."""

    lr: float = Field(0.3, gt=0)
    """Local step size η."""

    lr_predictor: float = Field(0.0, ge=0)
    """Local step size η of the predictor φ; 0: the same as `lr`."""

    local_steps: int = Field(3, ge=1)
    """Number τ of local steps per round, each on all data of the client."""

    clip_norm: float = Field(0.0, ge=0)
    """Maximum L2 norm of a client's gradient in one step; 0: no clipping."""

    moments: Literal["reset", "persist"] = "persist"
    """Adam's moments between rounds: `reset` to zero, or `persist` in the client state."""

    weighting: Literal["uniform", "examples"] = "uniform"
    """Weight p_k of a client in the server's mean: `uniform` is 1/K; `examples` is its share of all
    training records."""

    def steps(self, phase: str) -> int:
        """Return the number of local steps of an exchange; a method may have a second exchange."""
        return self.local_steps

    def weight(self, examples: int) -> float:
        """Return the weight of a client with so many training records."""
        return 1.0 if self.weighting == "uniform" else float(examples)

    def rate(self, parameter: str) -> float:
        """Return η of a parameter, by its name; `predictor.…` may have its own."""
        return self.lr_predictor if self.lr_predictor and parameter.startswith("predictor.") else self.lr
