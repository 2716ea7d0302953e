"""Parameters of a task's model."""

import numpy as np
import torch
from torch import nn

from common.arrays import Arrays
from common.tasks.spec import OptionsT, TaskRun, TaskSpec, VocabularyT


def build_model(spec: TaskSpec[OptionsT, VocabularyT], run: TaskRun[OptionsT, VocabularyT]) -> nn.Module:
    """Build the task's model with parameters drawn from the run's seed; torch's global generator stays as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        return spec.build_model(run)


def parameters(module: nn.Module) -> Arrays:
    """Return copies of a module's parameters by name."""
    return {name: p.detach().numpy().copy() for name, p in module.named_parameters()}


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Return copies of the arrays as tensors."""
    return {name: torch.from_numpy(np.array(a)) for name, a in arrays.items()}
