"""Trainers, one a method; `build_trainer` mirrors `server.strategies.registry.build_strategy`."""

from typing import assert_never

from client.trainers.fedavg import FedAvgTrainer
from client.trainers.fedprox import FedProxTrainer
from client.trainers.fedrule import FedRuleTrainer
from client.trainers.perfedavg import PerFedAvgTrainer
from client.trainers.personalized import ClusterTrainer, DittoTrainer, FedRepTrainer, FedSTLTrainer, LocalTrainer
from client.trainers.pfedme import PFedMeTrainer
from client.trainers.pfgnn import PFGNNTrainer
from common.methods.registry import (
    IFCA,
    PFGNN,
    Algorithm,
    Ditto,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedGA,
    FedProx,
    FedRep,
    FedRule,
    FedSTL,
    FedYogi,
    Local,
    PerFedAvg,
    PFedMe,
)


def build_trainer(algorithm: Algorithm) -> FedAvgTrainer:
    """The client side of a method."""
    match algorithm:
        case FedAvg() | FedAdam() | FedYogi() | FedAdagrad() | FedGA():
            return FedAvgTrainer(algorithm)
        case FedProx():
            return FedProxTrainer(algorithm)
        case FedRule():
            return FedRuleTrainer(algorithm)
        case FedRep():
            return FedRepTrainer(algorithm)
        case Local():
            return LocalTrainer(algorithm)
        case Ditto():
            return DittoTrainer(algorithm)
        case IFCA():
            return ClusterTrainer(algorithm)
        case FedSTL():
            return FedSTLTrainer(algorithm)
        case PFedMe():
            return PFedMeTrainer(algorithm)
        case PerFedAvg():
            return PerFedAvgTrainer(algorithm)
        case PFGNN():
            return PFGNNTrainer(algorithm)
        case _:
            assert_never(algorithm)
