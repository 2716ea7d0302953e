"""Rules of the model that a run delivers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from common.config.run import RunConfig


def chooses_model(config: "RunConfig") -> bool:
    """Return True if metrics on validation data choose the round whose model is delivered."""
    return config.federation.deliver == "best" and config.task_options.validation_share > 0


def keeps_rounds(config: "RunConfig") -> bool:
    """Return True if clients keep the layers that never leave them after each evaluation.

    They do under planners that learn from metrics. The model of any round can then be delivered.
    """
    capabilities = config.capabilities
    is_shared = capabilities.private_layers == "none" and capabilities.own_model == "none"
    return chooses_model(config) and config.planner.by_rewards and is_shared
