"""Registry of training methods; planners are in `common.methods.planners`."""

from common.errors import ConfigError
from common.methods.base import AnyMethod, MethodSpec
from common.methods.planners import PLANNERS
from common.registry import Registry
from common.text import hint

METHODS: Registry[AnyMethod] = Registry(
    "method",
    "fedloom.methods",
    MethodSpec,
    {
        "fedavg": "common.methods.fedavg:FEDAVG",
        "fedprox": "common.methods.fedavg:FEDPROX",
        "fedadam": "common.methods.fedavg:FEDADAM",
        "fedyogi": "common.methods.fedavg:FEDYOGI",
        "fedadagrad": "common.methods.fedavg:FEDADAGRAD",
        "fedrule": "common.methods.fedrule:METHOD",
        "fedga": "common.methods.fedavg:FEDGA",
        "fedrep": "common.methods.personalized:FEDREP",
        "ditto": "common.methods.personalized:DITTO",
        "local": "common.methods.personalized:LOCAL",
        "ifca": "common.methods.clustered:METHOD",
        "fedstl": "common.methods.fedstl:METHOD",
        "pfgnn": "common.methods.pfgnn:METHOD",
    },
    moved=dict.fromkeys(("pfedme", "perfedavg"), "studies/plugins/personalization"),
)

FIRST_METHOD = "fedrule"
"""Default method."""

ALONE = "local"
"""Method in which every client trains alone."""


def method_names() -> tuple[str, ...]:
    """Return the valid values of `method`: training methods, then planners.

    Raises:
        ConfigError: A package provides a planner with the name of a method.
    """
    if twice := next((name for name in PLANNERS if name in METHODS), ""):
        raise ConfigError(
            f"'{twice}' is a method of {METHODS.origin(twice)} and a planner of {PLANNERS.origin(twice)}; uninstall one"
        )
    return (*METHODS, *PLANNERS)


def describe_unknown_method(name: str) -> str:
    """Return the message about an unknown value of `method`."""
    for registry in (METHODS, PLANNERS):
        if name in registry.moved:
            return registry.describe_unknown(name)
    closest = hint(name, method_names()) or ";"
    return f"unknown method '{name}'{closest} installed: {', '.join(method_names())}"
