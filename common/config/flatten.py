"""Configuration as dotted keys and scalars, for files, messages and Flower's run config."""

import json

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import WireError
from common.options import Scalar, leaves


def flatten(config: RunConfig) -> dict[str, Scalar]:
    """Return the configuration as dotted keys, with the sections of the chosen task, method and planner."""
    tree = config.model_dump(by_alias=True, exclude={"method_options", "planner_options", "task_options"})
    methods = [options for options in (config.method_options, config.planner_options) if options]
    tree["algorithm"] = {options.name: options.model_dump(by_alias=True) for options in methods}
    tree["tasks"] = {config.task: config.task_options.model_dump(by_alias=True)}
    return dict(leaves(tree, ""))


def to_json(config: RunConfig) -> str:
    """Return the configuration as the JSON text that is sent to clients."""
    return json.dumps(flatten(config), sort_keys=True)


def read_names(text: str) -> tuple[str, str, str]:
    """Return the names of task, method and training method in the text of `to_json`.

    The function imports no task and no method.

    Raises:
        WireError: The text is not a configuration.
    """
    try:
        flat = json.loads(text)
        method = str(flat["method"])
        return str(flat["task"]), method, str(flat.get(f"algorithm.{method}.inner", method))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise WireError("the run's configuration cannot be decoded") from None


def from_json(text: str) -> RunConfig:
    """Parse the text of `to_json`."""
    return parse(json.loads(text))
