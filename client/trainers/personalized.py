"""The client side of methods that leave each client a model of its own."""

from collections.abc import Collection

from client.stacked_tensors import Tensors
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.proximal import pulled
from client.trainers.spec import ClientMethod
from common.methods import clustered, fedstl, personalized
from common.methods.personalized import Ditto, FedRep
from common.wire.messages import CLUSTER


class FedRepTrainer(FedAvgTrainer):
    """A private head, trained before the shared layers or together with them."""

    def __init__(self, options: FedRep) -> None:
        super().__init__(options)
        self.head_steps = options.head_steps

    def frozen(self, step: int, phase: str, private: Collection[str], names: Collection[str]) -> Collection[str]:
        """First the shared layers rest, then the head."""
        if self.head_steps == 0 or not private:
            return ()
        return set(names) - set(private) if step < self.head_steps else private


class DittoTrainer(FedAvgTrainer):
    """FedAvg, and v_k ← v_k − η(∇L_k(v_k) + λ(v_k − θ)) beside it."""

    def __init__(self, options: Ditto) -> None:
        super().__init__(options)
        self.strength = options.pull

    def pull(self, gradient: Tensors, params: Tensors, start: Tensors) -> Tensors:
        """∇L_k(v) + λ(v − θ)."""
        return pulled(gradient, params, start, self.strength)


class ClusterTrainer(FedAvgTrainer):
    """IFCA: descend from the cluster's model; what comes of it is also the client's own."""

    shared_as = "cluster_"


class FedSTLTrainer(ClusterTrainer):
    """Algorithm 2 at client i: φ_j's shared layers with the private head, then descent on F_i."""

    def frozen(self, step: int, phase: str, private: Collection[str], names: Collection[str]) -> Collection[str]:
        """Cluster epochs move shared layers only."""
        return private if phase == CLUSTER else ()


FEDREP = ClientMethod(personalized.FEDREP, FedRepTrainer)
DITTO = ClientMethod(personalized.DITTO, DittoTrainer)
LOCAL = ClientMethod(personalized.LOCAL, FedAvgTrainer)
IFCA = ClientMethod(clustered.METHOD, ClusterTrainer)
FEDSTL = ClientMethod(fedstl.METHOD, FedSTLTrainer)
