"""Registry of the client sides of methods."""

from typing import cast

from client.trainers.base import AnyClientMethod, ClientMethod, Trainer
from common.methods.base import MethodOptions
from common.registry import Registry, expect, naming_packages

CLIENT_METHODS: Registry[AnyClientMethod] = Registry(
    "method",
    "fedloom.methods.client",
    ClientMethod,
    {
        "fedavg": "client.trainers.fedavg:METHOD",
        "fedprox": "client.trainers.fedavg:FEDPROX",
        "fedadam": "client.trainers.fedavg:FEDADAM",
        "fedyogi": "client.trainers.fedavg:FEDYOGI",
        "fedadagrad": "client.trainers.fedavg:FEDADAGRAD",
        "fedrule": "client.trainers.fedrule:METHOD",
        "fedga": "client.trainers.fedavg:FEDGA",
        "fedrep": "client.trainers.personalized:FEDREP",
        "ditto": "client.trainers.personalized:DITTO",
        "local": "client.trainers.personalized:LOCAL",
        "ifca": "client.trainers.personalized:IFCA",
        "fedstl": "client.trainers.personalized:FEDSTL",
        "pfgnn": "client.trainers.pfgnn:METHOD",
        "ridge": "client.trainers.ridge:METHOD",
    },
)


def build_trainer(options: MethodOptions) -> Trainer:
    """Build the trainer of a method."""
    with naming_packages(CLIENT_METHODS.packages(options.name)):
        return cast(Trainer, expect(CLIENT_METHODS[options.name].trainer(options), Trainer))
