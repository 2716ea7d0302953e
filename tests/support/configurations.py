"""Configurations of every method, and the messages of refused ones."""

from collections.abc import Mapping

import pytest

from common.config.keys import current_key
from common.config.parse import parse
from common.errors import ConfigError
from common.methods.planners import PLANNERS, method_names
from common.options import Scalar

TASKS_OF: dict[str, str] = {"fedstl": "traffic", "pfgnn": "markets"}
"""Tasks of the methods that support one task only."""

BARE: dict[str, dict[str, Scalar]] = {
    method: {"method": method, "task": TASKS_OF.get(method, "rules")}
    | ({"privacy.unit": "client"} if method in PLANNERS and PLANNERS[method].options.needs_noise else {})
    for method in method_names()
}
"""Method -> the fewest options with which it is valid."""


RUN_OPTIONS = {"task", "rounds", "seed", "first", "model", "evaluate-every", "catalogue", "resume", "run-id"}


def method_options(method: str, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return configuration keys: `lr` becomes an option of the method, `tasks__rules__hidden` has dots."""
    keys = {name: name.replace("__", ".").replace("_", "-") for name in options}
    return {
        key if "." in key or key in RUN_OPTIONS else current_key(f"algorithm.{method}.{key}"): options[name]
        for name, key in keys.items()
    }


def refusal(flat: dict[str, Scalar]) -> str:
    """Return the message of a configuration that must be refused."""
    with pytest.raises(ConfigError) as caught:
        parse(flat)
    return str(caught.value)
