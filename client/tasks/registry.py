"""Client tasks: definition of a task (reader, writer, learner, network for export), and the registry.

Importing it must not import torch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from client.data.dataset import AnyDataset, Dataset, DataSummary, Source, UnitT
from client.data.tables.account import Nouns
from client.data.tables.files import TABLES
from client.data.tables.schema import TableSchema
from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.registry import Registry, load_attribute, naming_packages
from common.tasks.spec import OptionsT, TaskRun, TaskSpec, VocabularyT

if TYPE_CHECKING:
    from torch import nn

    from client.tasks.learner import Learner


@dataclass(frozen=True, eq=False)
class ClientTask(Generic[OptionsT, VocabularyT, UnitT]):
    """Definition of a task at the client; importing it must not import torch.

    Args:
        spec: Definition for server and clients.
        unit: Noun of the unit of data.
        schema: Columns of its tables.
        table: File name of one client's own table.
        demo_units: Number of units in the embedded data.
        read: Read a source under a vocabulary; None: build the vocabulary from the data. The last argument seeds demo data.
        write: Write a data set as one table; reading it gives the same data set.
        learner: Build the learner of a run from a client's data.
        generate: Generate units start … stop−1 of the demo data from (start, stop, seed); None if `read` does.
        published: Return True if the folder is a public set in its published form.
        warnings: Return warnings to the owner about the data under these options.
        test_file: True if `--test FILE` can hold out a file of records.
        suffixes: Suffixes of the tables in a folder.
        client_per_unit: True if each unit is a client by default.
        public_units: True if names of units are public and reports may show them.
        summarize: Summarize a data set under these options; None if the task cannot.
        variants: Name -> generator of further demo data, `demo:NAME` and `demo:NAME:START-STOP`.
        label: Label of a unit for partitions such as `dirichlet:0.3`; None if its units are no people's.
        takes_splits: True if the task takes the splits of a folder as they are.
    """

    spec: TaskSpec[OptionsT, VocabularyT]
    unit: Nouns
    schema: TableSchema
    table: str
    demo_units: int
    read: Callable[[Source, VocabularyT | None, int], Dataset[VocabularyT, UnitT]]
    write: Callable[[Path, Dataset[VocabularyT, UnitT]], None]
    learner: Callable[[TaskRun[OptionsT, VocabularyT], Dataset[VocabularyT, UnitT]], "Learner"]
    generate: Callable[[int, int, int], tuple[UnitT, ...]] | None = None
    published: Callable[[Path], bool] = lambda folder: False
    warnings: Callable[[OptionsT, Dataset[VocabularyT, UnitT]], Iterable[str]] = lambda options, dataset: ()
    test_file: bool = False
    suffixes: tuple[str, ...] = TABLES
    client_per_unit: bool = False
    public_units: bool = False
    summarize: "Callable[[OptionsT, Dataset[VocabularyT, UnitT]], DataSummary] | None" = None
    variants: Mapping[str, Callable[[int, int, int], tuple[UnitT, ...]]] = field(default_factory=dict)
    takes_splits: bool = False
    label: Callable[[UnitT], float] | None = None

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.spec.name


AnyClientTask = ClientTask[Any, Any, Any]
"""Client task with erased type parameters."""


def reading(path: str) -> Callable[[Source, Any, int], Any]:
    """Return the reader of a task by the function of text, vocabulary and dialect at `module:attribute`."""
    return lambda source, vocabulary, seed: load_attribute(path)(source.text, vocabulary, dialect=source.dialect)


Network = Callable[[Arrays], Array]
"""Trained network: inputs by name -> output."""


@dataclass(frozen=True, eq=False)
class ExportableNetwork:
    """Network of a finished model with named inputs, to be exported.

    Args:
        module: Module that holds the trained parameters; its arguments are the inputs in the order of `axes`.
        axes: Name of an input -> axis of variable size -> name of that size.
        sample: Draw inputs of a size, such as a number of devices, clicks or items.
        output: Name of the output.
    """

    module: "nn.Module"
    axes: Mapping[str, Mapping[int, str]]
    sample: Callable[[int, np.random.Generator], Arrays]
    output: str


CLIENT_TASKS: Registry[AnyClientTask] = Registry(
    "task",
    "fedloom.tasks.client",
    ClientTask,
    {
        "rules": "client.tasks.rules.task:TASK",
        "sessions": "client.tasks.sessions.task:TASK",
        "traffic": "client.tasks.traffic.task:TASK",
        "ratings": "client.tasks.ratings.task:TASK",
        "markets": "client.tasks.markets.task:TASK",
    },
)


def build_learner(config: RunConfig, dataset: AnyDataset) -> "Learner":
    """Build the learner of a run's task from a client's data.

    Raises:
        PackageError: The learner of a package lacks a member of the protocol.
    """
    task = CLIENT_TASKS[config.task]
    with naming_packages(CLIENT_TASKS.packages(config.task)):
        learner = task.learner(config.task_run(task.spec, dataset.vocabulary), dataset)
        members = ("batch", "evaluate", "examples", "loss", "module", "rows", "shared", "size", "step_inputs", "task")
        if missing := [name for name in members if name not in dir(learner)]:
            raise TypeError(f"its learner lacks {', '.join(missing)}")
    return learner
