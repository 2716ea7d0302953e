"""Configurations of runs whose trust is resolved."""

from common.config.run import RunConfig
from common.privacy.options import ResolvedTrust
from common.tasks.registry import TASKS


def with_noise_of_helpers(config: RunConfig) -> RunConfig:
    """Return the configuration without the mechanism that its task prefers for noise of clients."""
    if config.privacy.mechanism != TASKS[config.task].defaults.get("privacy.mechanism"):
        return config
    return config.model_copy(update={"privacy": config.privacy.model_copy(update={"mechanism": "gaussian"})})


def with_trust(config: RunConfig, trust: ResolvedTrust) -> RunConfig:
    """Return the configuration under the resolved trust."""
    privacy = config.privacy.model_copy(update={"trust": trust})
    if trust == "local":
        return config.model_copy(update={"privacy": privacy})
    federation, fewest = config.federation, config.secure_sums.fewest
    quorum = {"min_clients": max(federation.min_clients, fewest), "min_replies": max(federation.min_replies, fewest)}
    update = {"privacy": privacy, "federation": federation.model_copy(update=quorum)}
    return config.model_copy(update={**update, "secure_sums": config.secure_sums.model_copy(update={"renew": False})})
