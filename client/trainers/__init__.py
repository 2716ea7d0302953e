"""Trainers, one a method; `build_trainer` mirrors `server.strategies.build_strategy`."""

from typing import assert_never

from client.trainers.fedavg import FedAvgTrainer
from client.trainers.fedprox import FedProxTrainer
from client.trainers.fedrule import FedRuleTrainer
from common.algorithms import Algorithm, FedAdagrad, FedAdam, FedAvg, FedGA, FedProx, FedRule, FedYogi


def build_trainer(algorithm: Algorithm) -> FedAvgTrainer:
    """The client side of a method."""
    match algorithm:
        case FedAvg() | FedAdam() | FedYogi() | FedAdagrad() | FedGA():
            return FedAvgTrainer(algorithm)
        case FedProx():
            return FedProxTrainer(algorithm)
        case FedRule():
            return FedRuleTrainer(algorithm)
        case _:
            assert_never(algorithm)
