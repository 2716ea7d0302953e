"""Configuration as dotted keys and scalars: in files, on the wire, in Flower's run config."""

import json

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import WireError
from common.options import Scalar, leaves


def flatten(config: RunConfig) -> dict[str, Scalar]:
    """Return the resolved configuration as dotted keys, with the sections of the chosen task, method and planner."""
    chosen = {"method_options", "planner_options", "task_options"}
    tree = config.model_dump(by_alias=True, exclude=chosen)
    methods = [options for options in (config.method_options, config.planner_options) if options]
    tree["algorithm"] = {options.name: options.model_dump(by_alias=True) for options in methods}
    tree["tasks"] = {config.task: config.task_options.model_dump(by_alias=True)}
    return dict(leaves(tree, ""))


def to_json(config: RunConfig) -> str:
    """Return the resolved configuration as it is sent to clients."""
    return json.dumps(flatten(config), sort_keys=True)


def names_in(text: str) -> tuple[str, str, str]:
    """Return the names of task, method and training method in the text of `to_json`, without importing anything of them.

    Raises:
        WireError: The text is no configuration.
    """
    try:
        flat = json.loads(text)
        method = str(flat["method"])
        return str(flat["task"]), method, str(flat.get(f"algorithm.{method}.inner", method))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise WireError("the configuration of the run cannot be decoded") from None


def from_json(text: str) -> RunConfig:
    """Parse the text of `to_json`."""
    return parse(json.loads(text))
