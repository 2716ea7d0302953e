"""Strategies, one a method; `build_strategy` mirrors `client.trainers.build_trainer`."""

from typing import Any, assert_never

from common.algorithms import Algorithm, FedAdam, FedAvg, FedProx, FedRule, FedYogi
from server.strategies.fedavg import FedAvgStrategy, FedProxStrategy
from server.strategies.fedopt import FedOptStrategy
from server.strategies.fedrule import FedRuleStrategy
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
        case FedRule():
            return FedRuleStrategy(algorithm, **parts)
        case _:
            assert_never(algorithm)
