"""Models, one architecture a file; `build_model` is the one place that chooses, on the server and on every client."""

import numpy as np
import torch
from torch import nn

from common.arrays import Arrays
from common.config import RunConfig
from common.models.rules import RuleRecommender
from common.tasks.rules import Catalogue


def build_model(config: RunConfig, catalogue: Catalogue) -> nn.Module:
    """The task's model with parameters drawn from the run's seed; the global generator is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        options = config.tasks.rules
        return RuleRecommender(
            len(catalogue.entities), len(catalogue.relations), options, paper=config.model == "paper"
        )


def parameters(module: nn.Module) -> Arrays:
    """A module's parameters by name, copied out."""
    return {name: p.detach().numpy().copy() for name, p in module.named_parameters()}


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Arrays as tensors, copied in."""
    return {name: torch.from_numpy(np.array(a)) for name, a in arrays.items()}
