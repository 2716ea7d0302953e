"""Model of a finished run as a torch module."""

from typing import Any

import torch
from torch import nn

from client.inference.choose_model import models_of_run
from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.errors import ConfigError
from common.models import build_model, tensors
from common.tasks.registry import TASKS


def trained_network(config: RunConfig, vocabulary: Any, trained: Arrays) -> tuple[nn.Module, Arrays]:
    """Return the module with the trained parameters, and the summed statistics of the run.

    Parameters that the run did not save keep their initial values.

    Raises:
        ConfigError: The run has a model for each cluster.
    """
    if len(models := models_of_run(trained)) > 1:
        raise ConfigError(
            f"run '{config.run_id}' has {len(models)} models, one for each cluster of clients;"
            " export a run of another method, such as fedavg"
        )
    module = build_model(TASKS[config.task], config.task_run(TASKS[config.task], vocabulary))
    own = dict(module.named_parameters())
    with torch.no_grad():
        for name, values in tensors({name: a for name, a in trained.items() if name in own}).items():
            own[name].copy_(values)
    statics: dict[str, Array] = {name: a for name, a in trained.items() if name not in own}
    return module, statics
