"""Registry of the server sides of methods."""

from common.registry import Registry
from server.strategies.round import RoundStrategy
from server.strategies.spec import AnyServerMethod, RoundParts, ServerMethod

SERVER_METHODS: Registry[AnyServerMethod] = Registry(
    "method",
    "fedloom.methods.server",
    ServerMethod,
    {
        "fedavg": "server.strategies.fedavg:METHOD",
        "fedprox": "server.strategies.fedavg:FEDPROX",
        "fedadam": "server.strategies.fedopt:FEDADAM",
        "fedyogi": "server.strategies.fedopt:FEDYOGI",
        "fedadagrad": "server.strategies.fedopt:FEDADAGRAD",
        "fedrule": "server.strategies.fedrule:METHOD",
        "fedga": "server.strategies.fedga:METHOD",
        "fedrep": "server.strategies.personalized:FEDREP",
        "ditto": "server.strategies.personalized:DITTO",
        "local": "server.strategies.personalized:LOCAL",
        "ifca": "server.strategies.clustered:METHOD",
        "fedstl": "server.strategies.fedstl:METHOD",
        "pfedme": "server.strategies.pfedme:METHOD",
        "perfedavg": "server.strategies.personalized:PERFEDAVG",
        "pfgnn": "server.strategies.pfgnn:METHOD",
    },
)


def build_strategy(parts: RoundParts) -> RoundStrategy:
    """Build the strategy of the run's training method."""
    options = parts.config.method_options
    strategy: RoundStrategy = SERVER_METHODS[options.name].strategy(options, parts)
    return strategy
