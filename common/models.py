"""Parameters of task models: seeded initialization, and conversion between arrays and tensors."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from common.arrays import Arrays, all_finite, group
from common.registry import naming_packages
from common.tasks.registry import TASKS
from common.tasks.spec import OptionsT, TaskRun, TaskSpec, VocabularyT

if TYPE_CHECKING:
    from torch import Tensor, nn

    from common.config.run import RunConfig


def build_model(spec: TaskSpec[OptionsT, VocabularyT], run: TaskRun[OptionsT, VocabularyT]) -> nn.Module:
    """Build the task's model, initialized from the run's seed; torch's global generator is restored."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        return spec.build_model(run)


def parameters_of(config: RunConfig, vocabulary: Any) -> Arrays:
    """Return the initial parameters of a run's model by name; none for a closed form, without PyTorch."""
    spec = TASKS[config.task]
    if config.capabilities.closed_form:
        return {}
    with naming_packages(TASKS.packages(config.task)):
        model = parameters(build_model(spec, config.task_run(spec, vocabulary)))
        if not model or not all_finite(model):
            raise ValueError("`build_model` returns a model without parameters, or with NaN or infinity")
    return model


def parameters(module: nn.Module) -> Arrays:
    """Return copies of a module's parameters as arrays, by name."""
    return {name: p.detach().numpy().copy() for name, p in module.named_parameters()}


def tensors(arrays: Arrays) -> dict[str, Tensor]:
    """Return copies of arrays as tensors."""
    import torch

    return {name: torch.from_numpy(np.array(a)) for name, a in arrays.items()}


def models_of_run(trained: Arrays) -> list[Arrays]:
    """Return the models of a finished run: one for each cluster (`0/name`, `1/name`, …), or the only one."""
    clusters = sorted({name.partition("/")[0] for name in trained if _is_of_cluster(name)}, key=int)
    return [group(key, trained) for key in clusters] or [trained]


def split_statics(trained: Arrays, parameters: Collection[str]) -> tuple[list[Arrays], Arrays]:
    """Return the models of a finished run with these parameters, and its summed statistics.

    The model of a closed form has no parameters.
    """
    models = [{name: one[name] for name in parameters if name in one} for one in models_of_run(trained)]
    return models, {name: a for name, a in trained.items() if name not in parameters and not _is_of_cluster(name)}


def _is_of_cluster(name: str) -> bool:
    return name.partition("/")[0].isdigit()
