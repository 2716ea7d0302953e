"""Registry of the server sides of methods."""

from common.registry import Registry
from server.round.method import AnyServerMethod, ServerMethod

SERVER_METHODS: Registry[AnyServerMethod] = Registry(
    "method",
    "fedloom.methods.server",
    ServerMethod,
    {
        "fedavg": "server.methods.fedavg:METHOD",
        "fedprox": "server.methods.fedavg:FEDPROX",
        "fedadam": "server.methods.fedavg:FEDADAM",
        "fedyogi": "server.methods.fedavg:FEDYOGI",
        "fedadagrad": "server.methods.fedavg:FEDADAGRAD",
        "fedrule": "server.methods.fedrule:METHOD",
        "fedga": "server.methods.fedga:METHOD",
        "fedrep": "server.methods.fedavg:FEDREP",
        "ditto": "server.methods.fedavg:DITTO",
        "local": "server.methods.fedavg:LOCAL",
        "ifca": "server.methods.ifca:METHOD",
        "fedstl": "server.methods.fedstl:METHOD",
        "pfgnn": "server.methods.pfgnn:METHOD",
        "ridge": "server.methods.ridge:METHOD",
    },
)
