"""Definition of a task at the command line and in reports."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deploy.cli.commands import CommandRef

if TYPE_CHECKING:
    from client.data.dataset import AnyDataset
    from client.inference.stored_models import StoredModel
    from common.arrays import Arrays
    from common.config.run import RunConfig
    from common.options import Scalar
    from deploy.report.run import RunRecord
    from deploy.report.sections import Section

QUERY_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""Form of the name of a query option."""

RESERVED = frozenset({"data", "top", "run", "state-dir", "json", "help"})
"""Options of `fedloom recommend` that every task has."""


def no_sections(records: Sequence["RunRecord"]) -> Iterable["Section"]:
    """Return no section."""
    return ()


@dataclass(frozen=True)
class QueryOption:
    """Option of `fedloom recommend` that a task understands; its value is text, empty if absent.

    Args:
        name: Name without dashes in front; two tasks may share one.
        help: Sentence for `fedloom recommend --help`, without the task's name.
        metavar: Placeholder of the value in the help.

    Raises:
        ValueError: The name is malformed, or `fedloom recommend` has such an option for every task.
    """

    name: str
    help: str
    metavar: str = "TEXT"

    def __post_init__(self) -> None:
        if not QUERY_NAME.fullmatch(self.name) or self.name in RESERVED:
            raise ValueError(f"'{self.name}' cannot be the name of a query option; choose another one")


@dataclass(frozen=True)
class Answers:
    """Answers of a model to a query, best first.

    Args:
        title: Subject of the query, above the table.
        noun: Noun of one answer.
        columns: Heading of a column -> keys of a row whose values it shows.
        rows: Answers as JSON objects.
        notes: Lines about the model that was used, printed on stderr.
    """

    title: str
    noun: str
    columns: Mapping[str, tuple[str, ...]]
    rows: Sequence[Mapping[str, "Scalar"]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedRun:
    """Finished run, and data to which its model is applied.

    Args:
        name: Name of the run.
        config: Its configuration.
        vocabulary: Its vocabulary.
        model: The model as the server saved it, with the summed statistics from which it started.
        data: Source of the data.
        read: Read the data under the run's vocabulary; the argument names a file of records to hold out, or is empty.
        find_stored: Find the model that a client on this machine stored of the run; the argument is its name, or empty
            for the client that trained on these data.
    """

    name: str
    config: "RunConfig"
    vocabulary: Any
    model: "Arrays"
    data: str
    read: Callable[[str], "AnyDataset"]
    find_stored: Callable[[str], "StoredModel | None"]


@dataclass(frozen=True)
class DeployTask:
    """Task at the command line and in reports. Importing it must not import torch or matplotlib.

    Args:
        name: Name of the task.
        query: Options of `fedloom recommend` that `answer` understands.
        answer: Answer a query; arguments are the run, the values of the options by name, and the number of answers.
            None if the task answers no queries.
        sections: Sections of report.html, from all runs of the page.
        commands: Further commands; a name that `fedloom` has already is left out.
    """

    name: str
    query: tuple[QueryOption, ...] = ()
    answer: Callable[[TrainedRun, Mapping[str, str], int], Answers] | None = None
    sections: Callable[[Sequence["RunRecord"]], Iterable["Section"]] = no_sections
    commands: tuple[CommandRef, ...] = ()
