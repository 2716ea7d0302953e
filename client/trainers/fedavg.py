"""Client side of FedAvg, and of every method that differs from it on the server only."""

from collections.abc import Collection

from client.stacked_tensors import Tensors
from client.state import ClientMemory
from client.trainers.gradient_descent import GradientAndLoss
from client.trainers.spec import ClientMethod, Cohort, CohortResult, LocalResult
from client.training.descent import descend_stacked
from client.training.participant import Participant
from common.arrays import Arrays
from common.methods import fedavg, fedga, fedopt
from common.methods.spec import MethodOptions


class FedAvgTrainer:
    """Plain local descent: θ_k ← θ_k − η ∇L_k."""

    shared_as = "global_"
    draws = 1

    def __init__(self, options: MethodOptions) -> None:
        self.options = options

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """Return ∇L_k."""
        return plain

    def frozen(self, step: int, phase: str, private: Collection[str], names: Collection[str]) -> Collection[str]:
        """Return nothing: every step moves all parameters."""
        return ()

    def pull(self, gradient: Tensors, params: Tensors, start: Tensors) -> Tensors:
        """Return the gradient."""
        return gradient

    def upload(self, displacement: Tensors) -> Tensors:
        """Return Δ_k."""
        return displacement

    def released(self, update: Arrays, gradient: Arrays, steps: int) -> dict[str, Tensors]:
        """Return nothing: no state depends on released values."""
        return {}

    def settle(self, state: dict[str, Tensors], counted: bool, shared: Tensors) -> Tensors:
        """Return no control variate."""
        return {}

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return the gradient."""
        return gradient

    def conclude(self, control: Tensors, displacement: Tensors, gradient: Tensors, steps: int) -> LocalResult:
        """Send nothing beside Δ_k and store no state."""
        return LocalResult({}, {})

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train all participants at once, stacked."""
        return descend_stacked(self, cohort)

    def personalize(self, participant: Participant) -> ClientMemory | None:
        """Return None: the method adapts no model."""
        return None


METHOD = ClientMethod(fedavg.METHOD, FedAvgTrainer)
FEDADAM = ClientMethod(fedopt.FEDADAM, FedAvgTrainer)
FEDYOGI = ClientMethod(fedopt.FEDYOGI, FedAvgTrainer)
FEDADAGRAD = ClientMethod(fedopt.FEDADAGRAD, FedAvgTrainer)
FEDGA = ClientMethod(fedga.METHOD, FedAvgTrainer)
