"""Public surface for plug-ins at the client."""

from client.data.dataset import Dataset, Source, Unit, demo_range, floor_share, own_rng
from client.data.tables.files import write_private_csv
from client.data.tables.reader import read_table
from client.data.tables.schema import Column, Dialect, TableSchema
from client.data.tables.table import Table
from client.state import ClientMemory
from client.tasks.learner import ComparesUnits, DoubtsRun, HasBaselines, HasItemRows, HasProperty, Learner, means, shell
from client.tasks.registry import ClientTask, ExportableNetwork, Network
from client.trainers.base import ClientMethod, Cohort, CohortResult, LocalResult, Trainer
from client.trainers.fedavg import FedAvgTrainer
from client.training.participant import HasWideRows, Participant
from client.training.stacks import Tensors
from client.training.state import adapt_model
from client.training.steps import GradientAndLoss
from common.models import build_model, parameters, tensors

__all__ = [
    "ClientMemory",
    "ClientMethod",
    "ClientTask",
    "Cohort",
    "CohortResult",
    "Column",
    "ComparesUnits",
    "Dataset",
    "Dialect",
    "DoubtsRun",
    "ExportableNetwork",
    "FedAvgTrainer",
    "GradientAndLoss",
    "HasBaselines",
    "HasItemRows",
    "HasProperty",
    "HasWideRows",
    "Learner",
    "LocalResult",
    "Network",
    "Participant",
    "Source",
    "Table",
    "TableSchema",
    "Tensors",
    "Trainer",
    "Unit",
    "adapt_model",
    "build_model",
    "demo_range",
    "floor_share",
    "means",
    "own_rng",
    "parameters",
    "read_table",
    "shell",
    "tensors",
    "write_private_csv",
]
