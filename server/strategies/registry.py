"""Strategies, one a method; `build_strategy` mirrors `client.trainers.registry.build_trainer`."""

from typing import Any, assert_never

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
from server.strategies.clustered import ClusteredStrategy
from server.strategies.fedavg import FedAvgStrategy, FedProxStrategy
from server.strategies.fedga import FedGAStrategy
from server.strategies.fedopt import FedOptStrategy
from server.strategies.fedrule import FedRuleStrategy
from server.strategies.fedstl import FedSTLStrategy
from server.strategies.fedstl_shared_windows import SharedWindowsStrategy
from server.strategies.perfedavg import PerFedAvgStrategy
from server.strategies.personalized import SharedMeanStrategy
from server.strategies.pfedme import PFedMeStrategy
from server.strategies.pfgnn import PFGNNStrategy
from server.strategies.round import RoundStrategy


def build_strategy(algorithm: Algorithm, **parts: Any) -> RoundStrategy:
    """The server side of a method; `parts` are `RoundStrategy`'s arguments."""
    match algorithm:
        case FedAvg():
            return FedAvgStrategy(algorithm, **parts)
        case FedProx():
            return FedProxStrategy(algorithm, **parts)
        case FedAdam():
            return FedOptStrategy(algorithm, "adam", **parts)
        case FedYogi():
            return FedOptStrategy(algorithm, "yogi", **parts)
        case FedAdagrad():
            return FedOptStrategy(algorithm, "adagrad", **parts)
        case FedGA():
            return FedGAStrategy(algorithm, **parts)
        case FedRule():
            return FedRuleStrategy(algorithm, **parts)
        case FedRep() | Ditto() | Local():
            return SharedMeanStrategy(algorithm, **parts)
        case IFCA():
            return ClusteredStrategy(algorithm, **parts)
        case FedSTL():
            kind = SharedWindowsStrategy if algorithm.cluster_data == "shared_sample" else FedSTLStrategy
            return kind(algorithm, **parts)
        case PFedMe():
            return PFedMeStrategy(algorithm, **parts)
        case PerFedAvg():
            return PerFedAvgStrategy(algorithm, **parts)
        case PFGNN():
            return PFGNNStrategy(algorithm, **parts)
        case _:
            assert_never(algorithm)
