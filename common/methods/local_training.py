"""What every method says about training on a client."""

from typing import Literal

from pydantic import Field

from common.options import Options


class LocalTraining(Options):
    """Local gradient descent on a client; the fields every method shares."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    """Rule of one local step."""

    lr: float = Field(0.3, gt=0)
    """η, local step size."""

    lr_predictor: float = Field(0.0, ge=0)
    """η of the predictor φ where it differs from the graph encoder's; 0 means `lr`."""

    local_steps: int = Field(3, ge=1)
    """τ, local steps a round, each on the client's whole data."""

    clip_norm: float = Field(0.0, ge=0)
    """Largest Euclidean norm of a client's gradient in one step; 0 clips nothing."""

    moments: Literal["reset", "persist"] = "persist"
    """Whether Adam's moments start anew each round or stay with the client."""

    weighting: Literal["uniform", "examples"] = "uniform"
    """A client's weight p_k in the server's mean: 1/K, or its share of all homes."""

    def steps(self, phase: str) -> int:
        """Local steps of an exchange; methods with a second one a round say how many it has."""
        return self.local_steps

    def rate(self, parameter: str) -> float:
        """η of the parameter of that name (`predictor.…` may have its own)."""
        return self.lr_predictor if self.lr_predictor and parameter.startswith("predictor.") else self.lr
