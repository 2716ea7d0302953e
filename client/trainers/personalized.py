"""Trainers of methods with a private head or a personalized model per client."""

from collections.abc import Collection

from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.stacks import Tensors
from client.training.steps import add_pull
from common.methods import clustered, fedstl, personalized
from common.methods.personalized import Ditto, FedRep
from common.wire.messages import CLUSTER


class FedRepTrainer(FedAvgTrainer):
    """Trainer of FedRep: the private head trains before the shared layers or together with them."""

    def __init__(self, options: FedRep) -> None:
        super().__init__(options)
        self.head_steps = options.head_steps

    def frozen_parameters(
        self, step: int, phase: str, private: Collection[str], names: Collection[str]
    ) -> Collection[str]:
        """Return the shared layers in the first `head-steps` steps, then the private head."""
        if self.head_steps == 0 or not private:
            return ()
        return set(names) - set(private) if step < self.head_steps else private


class DittoTrainer(FedAvgTrainer):
    """Trainer of Ditto: FedAvg, and v_k ← v_k − η(∇L_k(v_k) + λ(v_k − θ))."""

    def __init__(self, options: Ditto) -> None:
        super().__init__(options)
        self.strength = options.pull

    def pull(self, gradient: Tensors, params: Tensors, start: Tensors) -> Tensors:
        """Return ∇L_k(v) + λ(v − θ)."""
        return add_pull(gradient, params, start, self.strength)


class ClusterTrainer(FedAvgTrainer):
    """Trainer of IFCA: descent from the cluster's model; the result is also the personalized model."""

    shared_as = "cluster_"


class FedSTLTrainer(ClusterTrainer):
    """Trainer of FedSTL: descent on F_i from the cluster's layers and the private head (Algorithm 2)."""

    def frozen_parameters(
        self, step: int, phase: str, private: Collection[str], names: Collection[str]
    ) -> Collection[str]:
        """Return the private head in the second exchange, which trains the shared layers alone."""
        return private if phase == CLUSTER else ()


FEDREP = ClientMethod(personalized.FEDREP, FedRepTrainer)
DITTO = ClientMethod(personalized.DITTO, DittoTrainer)
LOCAL = ClientMethod(personalized.LOCAL, FedAvgTrainer)
IFCA = ClientMethod(clustered.METHOD, ClusterTrainer)
FEDSTL = ClientMethod(fedstl.METHOD, FedSTLTrainer)
