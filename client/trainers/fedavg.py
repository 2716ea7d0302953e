"""Trainers of FedAvg, of methods that are it on clients, and of FedProx (Li et al. 2020)."""

from client.trainers.base import ClientMethod, Cohort, CohortResult, Trainer
from client.training.descent import descend_stacked
from client.training.stacks import Tensors
from client.training.steps import add_pull
from common.methods import fedavg
from common.methods.base import MethodOptions
from common.methods.fedavg import FedProx


class FedAvgTrainer(Trainer):
    """Trainer with plain local descent: θ_k ← θ_k − η ∇L_k."""

    shared_as = "global_"
    samples_per_step = 1

    def __init__(self, options: MethodOptions) -> None:
        self.options = options

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train all participants at once, in stacked tensors."""
        return descend_stacked(self, cohort)


class FedProxTrainer(FedAvgTrainer):
    """Trainer with local descent on L_k(θ) + μ/2‖θ − θ^c‖²."""

    def __init__(self, options: FedProx) -> None:
        super().__init__(options)
        self.mu = options.mu

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return ∇L_k + μ(θ − θ^c)."""
        return add_pull(gradient, params, start, self.mu)


METHOD = ClientMethod(fedavg.FEDAVG, FedAvgTrainer)
FEDADAM = ClientMethod(fedavg.FEDADAM, FedAvgTrainer)
FEDYOGI = ClientMethod(fedavg.FEDYOGI, FedAvgTrainer)
FEDADAGRAD = ClientMethod(fedavg.FEDADAGRAD, FedAvgTrainer)
FEDGA = ClientMethod(fedavg.FEDGA, FedAvgTrainer)
FEDPROX = ClientMethod(fedavg.FEDPROX, FedProxTrainer)
