"""Public surface for plug-ins at the client."""

from client.data.dataset import Dataset, Unit
from client.data.partition import floor_share, own_rng
from client.data.sources import Source, demo_range
from client.stacked_tensors import Tensors
from client.state import ClientMemory
from client.tasks.learner import (
    ExcludesOwnCounts,
    HasBaselines,
    HasCounts,
    HasItemRows,
    HasProperty,
    Learner,
    PrivatizesCounts,
    SharesWindows,
    means,
    shell,
)
from client.tasks.spec import ClientTask
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.spec import ClientMethod, Cohort, CohortResult, LocalResult, Trainer
from client.training.participant import Participant
from common.models import build_model, parameters, tensors

__all__ = [
    "ClientMemory",
    "ClientMethod",
    "ClientTask",
    "Cohort",
    "CohortResult",
    "Dataset",
    "ExcludesOwnCounts",
    "FedAvgTrainer",
    "HasBaselines",
    "HasCounts",
    "HasItemRows",
    "HasProperty",
    "Learner",
    "LocalResult",
    "Participant",
    "PrivatizesCounts",
    "SharesWindows",
    "Source",
    "Tensors",
    "Trainer",
    "Unit",
    "build_model",
    "demo_range",
    "floor_share",
    "means",
    "own_rng",
    "parameters",
    "shell",
    "tensors",
]
