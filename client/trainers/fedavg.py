"""The client side of FedAvg, and of every method that differs from it on the server only."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from client.stacked_tensors import Tensors
from client.trainers.gradient_descent import GradientAndLoss
from common.arrays import Arrays
from common.methods.local_training import LocalTraining


@dataclass(frozen=True)
class LocalResult:
    """What a client's local training hands on."""

    gradient: Tensors
    """Uploaded beside Δ_k; empty unless the method asks for it."""
    kept: dict[str, Tensors]
    """Private memory by group, kept by the client until its next round."""


class FedAvgTrainer:
    """Plain local descent: θ_k ← θ_k − η ∇L_k."""

    own: Literal["none", "trained", "beside", "adapted"] = "none"
    """Which model a client keeps for itself: none; the one it trained; one that descends beside the global one; or one made
    of the shared model whenever it is measured (`client.training.evaluation.personalised`)."""

    shared_as = "global_"
    """Prefix of the shared model's metrics, where a client has one of its own as well."""

    draws = 1
    """How often a step draws what is random in a gradient; tensors of several draws carry them in front."""

    def __init__(self, options: LocalTraining) -> None:
        self.options = options

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """What a step descends along, made of ∇L_k."""
        return plain

    def private(self, names: Collection[str], head: Collection[str]) -> Collection[str]:
        """Which of a model's parameters stay with the client, `head` being those of its private head."""
        return ()

    def frozen(self, step: int, phase: str, private: Collection[str], names: Collection[str]) -> Collection[str]:
        """Which parameters rest in a step."""
        return ()

    def pull(self, gradient: Tensors, params: Tensors, start: Tensors) -> Tensors:
        """Direction of the model that descends beside the global one, `start`."""
        return gradient

    def upload(self, displacement: Tensors) -> Tensors:
        """What of Δ_k = θ^c − θ_k is sent."""
        return displacement

    def released(self, update: Arrays, gradient: Arrays, steps: int) -> dict[str, Tensors]:
        """Private memory by group, where it has to hold what left, clip and noise included, and not what they hide."""
        return {}

    def settle(self, kept: dict[str, Tensors], counted: bool, shared: Tensors) -> Tensors:
        """Control variate to train with, brought up to date.

        Args:
            kept: Memory left by the last round this client trained in, empty before the first.
            counted: Whether the server counted that round's reply.
            shared: What the server broadcasts about that round.
        """
        return {}

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Direction to step along."""
        return gradient

    def conclude(self, control: Tensors, displacement: Tensors, gradient: Tensors, steps: int) -> LocalResult:
        """Close a client's round; `displacement`: Δ_k = θ^c − θ_k, `gradient`: s_k."""
        return LocalResult({}, {})
