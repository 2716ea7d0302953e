"""Client side of the trimmed mean: FedAvg's."""

from client.api import ClientMethod, FedAvgTrainer
from trimmed_mean.spec import METHOD as SPEC

METHOD = ClientMethod(SPEC, FedAvgTrainer)
