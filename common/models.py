"""Models, one architecture a file; `build_model` is the one place that chooses, on the server and on every client."""

from typing import assert_never

import numpy as np
import torch
from torch import nn

from common.arrays import Arrays
from common.config.run import RunConfig
from common.methods.pfgnn import PFGNN
from common.tasks.markets.models.build import build_market_model
from common.tasks.markets.options import MarketCatalogue
from common.tasks.ratings.model import build_rating_model
from common.tasks.ratings.options import ProductCatalogue
from common.tasks.rules.model import RuleRecommender
from common.tasks.rules.options import RuleCatalogue
from common.tasks.sessions.history_blend import LocalBlend
from common.tasks.sessions.model import build_session_model
from common.tasks.sessions.options import Items
from common.tasks.traffic.model import build_forecaster
from common.tasks.traffic.options import SensorVariables, compared
from common.tasks.vocabularies import Names


def build_model(config: RunConfig, vocabulary: Names) -> nn.Module:
    """The task's model with parameters drawn from the run's seed; the global generator is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        match vocabulary:
            case RuleCatalogue():
                sizes = len(vocabulary.entities), len(vocabulary.relations)
                return RuleRecommender(*sizes, config.tasks.rules, paper=config.model == "paper")
            case Items():
                network = build_session_model(len(vocabulary.items), config.tasks.sessions)
                return network if config.model == "paper" else LocalBlend(network)
            case SensorVariables():
                if config.tasks.traffic.property == "difference":
                    compared(config.tasks.traffic, vocabulary)  # a wrong pair is told before anybody is invited
                return build_forecaster(len(vocabulary.variables), config.tasks.traffic, paper=config.model == "paper")
            case MarketCatalogue():
                pfgnn = config.chosen if isinstance(config.chosen, PFGNN) else None
                paper = config.model == "paper"
                return build_market_model(vocabulary, config.tasks.markets, paper=paper, pfgnn=pfgnn)
            case ProductCatalogue():
                return build_rating_model(len(vocabulary.items), config.tasks.ratings, paper=config.model == "paper")
            case _:
                assert_never(vocabulary)


def parameters(module: nn.Module) -> Arrays:
    """A module's parameters by name, copied out."""
    return {name: p.detach().numpy().copy() for name, p in module.named_parameters()}


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Arrays as tensors, copied in."""
    return {name: torch.from_numpy(np.array(a)) for name, a in arrays.items()}
