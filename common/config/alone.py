"""Configuration of the training of each client alone, with which a run is compared."""

from common.config.flatten import flatten
from common.config.parse import parse
from common.config.run import RunConfig
from common.methods.local_training import LocalTraining
from common.methods.registry import ALONE, METHODS
from common.options import kebab
from common.tasks.registry import TASKS


def is_comparable(config: RunConfig) -> bool:
    """Return True if a run can be compared with each client alone: no noise, units, another method."""
    is_alone = config.method_options.name == ALONE
    return config.privacy.unit == "none" and not is_alone and TASKS[config.task].comparison is not None


def configure_alone(config: RunConfig, rounds: int, catalogue: str) -> RunConfig:
    """Return the configuration of the same training without a federation: no noise, no sums of others.

    Raises:
        ConfigError: The method of clients alone does not support the task's options.
    """
    flat = {key: value for key, value in flatten(config).items() if not key.startswith(("algorithm.", "federation."))}
    option_names = METHODS[ALONE].options.model_fields
    shared = [name for name in LocalTraining.model_fields if name in option_names]
    flat |= {f"algorithm.{ALONE}.{kebab(name)}": getattr(config.method_options, name) for name in shared}
    flat |= {"method": ALONE, "rounds": rounds, "evaluate-every": rounds, "run-id": "alone", "resume": False}
    flat |= {"privacy.trust": "auto"} if config.privacy.resolved_trust == "helpers" else {}
    flat |= {f"tasks.{config.task}.{kebab(name)}": value for name, value in config.task_options.alone.items()}
    flat |= {"federation.min-clients": 1, "federation.wait": 1, "catalogue": catalogue}
    return parse(flat)
