"""Registry of training methods; planners, which train by one of these, are in `common.methods.planners`."""

from common.methods.planners import PLANNERS
from common.methods.spec import AnyMethod, MethodSpec
from common.registry import Registry

METHODS: Registry[AnyMethod] = Registry(
    "method",
    "fedloom.methods",
    MethodSpec,
    {
        "fedavg": "common.methods.fedavg:METHOD",
        "fedprox": "common.methods.fedprox:METHOD",
        "fedadam": "common.methods.fedopt:FEDADAM",
        "fedyogi": "common.methods.fedopt:FEDYOGI",
        "fedadagrad": "common.methods.fedopt:FEDADAGRAD",
        "fedrule": "common.methods.fedrule:METHOD",
        "fedga": "common.methods.fedga:METHOD",
        "fedrep": "common.methods.personalized:FEDREP",
        "ditto": "common.methods.personalized:DITTO",
        "local": "common.methods.personalized:LOCAL",
        "ifca": "common.methods.clustered:METHOD",
        "fedstl": "common.methods.fedstl:METHOD",
        "pfedme": "common.methods.pfedme:METHOD",
        "perfedavg": "common.methods.perfedavg:METHOD",
        "pfgnn": "common.methods.pfgnn:METHOD",
    },
)

FIRST_METHOD = "fedrule"
"""Method of a run that names none."""


def method_names() -> tuple[str, ...]:
    """Return the names that `method` may have: training methods, then planners."""
    return (*METHODS, *PLANNERS)
