"""Registry of the server sides of methods."""

from typing import cast

from common.registry import Registry
from server.round.method import AnyServerMethod, RoundParts, ServerMethod
from server.round.round import RoundStrategy

SERVER_METHODS: Registry[AnyServerMethod] = Registry(
    "method",
    "fedloom.methods.server",
    ServerMethod,
    {
        "fedavg": "server.methods.fedavg:METHOD",
        "fedprox": "server.methods.fedavg:FEDPROX",
        "fedadam": "server.methods.fedopt:FEDADAM",
        "fedyogi": "server.methods.fedopt:FEDYOGI",
        "fedadagrad": "server.methods.fedopt:FEDADAGRAD",
        "fedrule": "server.methods.fedrule:METHOD",
        "fedga": "server.methods.fedga:METHOD",
        "fedrep": "server.methods.fedavg:FEDREP",
        "ditto": "server.methods.fedavg:DITTO",
        "local": "server.methods.fedavg:LOCAL",
        "ifca": "server.methods.ifca:METHOD",
        "fedstl": "server.methods.fedstl:METHOD",
        "pfgnn": "server.methods.pfgnn:METHOD",
    },
)


def build_strategy(parts: RoundParts) -> RoundStrategy:
    """Build the strategy of the run's training method."""
    options = parts.config.method_options
    return cast(RoundStrategy, SERVER_METHODS[options.name].strategy(options, parts))
