"""Registry of training methods; planners are in `common.methods.planners`."""

from common.methods.base import AnyMethod, MethodSpec
from common.registry import Registry

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
        "ridge": "common.methods.ridge:METHOD",
    },
    moved=dict.fromkeys(("pfedme", "perfedavg"), "studies/plugins/personalization"),
)

FIRST_METHOD = "fedrule"
"""Default method."""

ALONE = "local"
"""Method in which every client trains alone."""
