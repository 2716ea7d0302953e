"""Networks of other packages, as a third kind of model beside the default and the paper's.

Importing it must not import torch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.errors import ConfigError
from common.registry import Registry
from common.tasks.options import VARIANTS, Capabilities
from common.tasks.registry import TASKS
from common.text import hint

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class NetworkSpec:
    """Network of a package for one task; importing it must not import torch.

    Args:
        name: Name of the model, `--model NAME`.
        task: Task whose graphs it reads; the task has `takes_networks`.
        summary: One line for `fedloom methods`.
        build: Build the module from its numbers of inputs and of outputs, with parameters from torch's global generator;
            imports torch inside. Its `forward` takes a `torch_geometric.data.Data`.

    Raises:
        ConfigError: fedloom has a model of this name, or no task has the other.
    """

    name: str
    task: str
    summary: str
    build: "Callable[[int, int], nn.Module]"

    def __post_init__(self) -> None:
        if self.name in VARIANTS:
            raise ConfigError(f"network '{self.name}' has the name of a model of fedloom; choose another name")
        if self.task not in TASKS:
            raise ConfigError(f"network '{self.name}': {TASKS.describe_unknown(self.task)}")


SEED = "network.seed"
"""Step input of networks of packages: seed of their random numbers, such as dropout masks."""

NETWORKS: Registry[NetworkSpec] = Registry("network", "fedloom.networks", NetworkSpec, {})


def model_names() -> tuple[str, ...]:
    """Return the valid values of `model`: the variants of each task, then networks of packages."""
    return (*VARIANTS, *NETWORKS)


def describe_unknown_model(name: str) -> str:
    """Return the message about an unknown value of `model`."""
    closest = hint(name, model_names()) or ";"
    return f"unknown model '{name}'{closest} installed: {', '.join(model_names())}; install the package of the network"


label = NETWORKS.label


def check_network(model: str, task: str, method: str, capabilities: Capabilities, *, has_sums: bool) -> None:
    """Check that task and method of a run train the network of a package.

    Args:
        model: Name of the network.
        task: Task of the run.
        method: Name of the training method.
        capabilities: What the method supports.
        has_sums: True if sums of a closed form come first.

    Raises:
        ConfigError: The package cannot be imported.
        ValueError: They do not.
    """
    able = [name for name in TASKS if TASKS[name].takes_networks]
    if (of := NETWORKS[model].task) != task or task not in able:
        remedy = f"set task={of}" if of in able else f"tasks with such networks: {', '.join(able)}"
        raise ValueError(f"{label(model)} does not apply to task '{task}'; {remedy}")
    if capabilities.closed_form or has_sums:
        raise ValueError(f"a closed form trains no {label(model)}; name a method that trains, such as fedavg")
    if capabilities.tasks:
        raise ValueError(f"method {method} trains networks of its own; set method=fedavg, or model=paper")
