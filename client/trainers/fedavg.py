"""Trainer of FedAvg, and of methods that differ from it on the server only."""

from client.trainers.base import ClientMethod, Cohort, CohortResult, Trainer
from client.training.descent import descend_stacked
from common.methods import fedavg
from common.methods import fedavg as fedga
from common.methods import fedavg as fedopt
from common.methods.base import MethodOptions


class FedAvgTrainer(Trainer):
    """Trainer with plain local descent: θ_k ← θ_k − η ∇L_k."""

    shared_as = "global_"
    samples_per_step = 1

    def __init__(self, options: MethodOptions) -> None:
        self.options = options

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train all participants at once, in stacked tensors."""
        return descend_stacked(self, cohort)


METHOD = ClientMethod(fedavg.FEDAVG, FedAvgTrainer)
FEDADAM = ClientMethod(fedopt.FEDADAM, FedAvgTrainer)
FEDYOGI = ClientMethod(fedopt.FEDYOGI, FedAvgTrainer)
FEDADAGRAD = ClientMethod(fedopt.FEDADAGRAD, FedAvgTrainer)
FEDGA = ClientMethod(fedga.FEDGA, FedAvgTrainer)
