"""Configurations of every method, and the messages of refused ones."""

import pytest

from common.config.parse import parse
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import method_names
from common.options import Scalar

TASKS_OF: dict[str, str] = {"fedstl": "traffic", "pfgnn": "markets"}
"""Tasks of the methods that support one task only."""

BARE: dict[str, dict[str, Scalar]] = {
    method: {"method": method, "task": TASKS_OF.get(method, "rules")}
    | ({"privacy.unit": "client"} if method in PLANNERS and PLANNERS[method].options.needs_noise else {})
    for method in method_names()
}
"""Method -> the fewest options with which it is valid."""


def refusal(flat: dict[str, Scalar]) -> str:
    """Return the message of a configuration that must be refused."""
    with pytest.raises(ConfigError) as caught:
        parse(flat)
    return str(caught.value)
