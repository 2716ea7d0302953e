"""Definition of a task at the command line and in reports."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deploy.cli.commands import CommandRef
from deploy.tasks.run import TrainedRun as TrainedRun

if TYPE_CHECKING:
    from common.options import Scalar
    from deploy.pages.view import RunRecord, Section
    from deploy.serving.spec import Serving
    from server.record.folder import Checkpoint

QUERY_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""Form of the name of a query option."""

RESERVED = frozenset({"data", "top", "run", "state-dir", "json", "format", "all", "out", "checkpoint", "help"})
"""Options of `fedloom recommend` that every task has."""


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
        empty: Reason why there are no rows, if so.
        what: Key of a row that names the answer.
        score: Key of a row with the number by which answers are ranked.
        user: Name of the unit, or of the item, that the answers are for; empty if there is none.
    """

    title: str
    noun: str
    columns: Mapping[str, tuple[str, ...]]
    rows: Sequence[Mapping[str, "Scalar"]]
    notes: tuple[str, ...] = ()
    empty: str = ""
    what: str = ""
    score: str = "score"
    user: str = ""

    def __post_init__(self) -> None:
        """Check that rows have what columns show.

        Raises:
            ValueError: A row lacks a key.
        """
        shown = {key for keys in self.columns.values() for key in keys}
        if missing := sorted(set().union(*(shown - row.keys() for row in self.rows))):
            raise ValueError(f"a row lacks '{missing[0]}', which `columns` names")


@dataclass(frozen=True)
class ForecastExample:
    """Forecast of held-out readings, beside the true ones; missing values are None.

    Args:
        title: Name of the series and its variable.
        note: Sentence about time and model.
        digits: Digits after the decimal point.
        times: Times of the steps, as text.
        forecast: Forecast of the model.
        low: Lower bounds of the interval.
        high: Upper bounds.
        truth: True readings.
    """

    title: str
    note: str
    digits: int
    times: Sequence[str]
    forecast: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    truth: Sequence[float | None]


Example = Answers | ForecastExample
"""Answer of a finished run on the live page."""


@dataclass(frozen=True)
class ServingRef:
    """Export and local serving of a task's models, loaded when needed.

    Args:
        unit: Option of `fedloom export-model` that names a unit of the data.
        load: Return the definition.
    """

    unit: QueryOption
    load: Callable[[], "Serving"]


@dataclass(frozen=True)
class DeployTask:
    """Task at the command line and in reports. Importing it must not import torch or matplotlib.

    Args:
        name: Name of the task.
        query: Options of `fedloom recommend` that `answer` understands.
        answer: Answer a query; arguments are the run, the values of the options by name, and the number of answers.
            None if the task answers no queries.
        examples: Make up to three examples of a run's answers for the live page. None for the first queries of `everybody`.
        clusters: Describe the clusters of a run in words, cluster -> text, from its last checkpoint. None without words.
        sections: Sections of report.html, from all runs of the page.
        commands: Further commands; a name that `fedloom` has already is left out.
        everybody: Return the queries of `fedloom recommend --all`; arguments are the run and the values of the options by name.
            None if the task has no batches.
        to_yaml: Return the answers to one query as a configuration that another program reads; arguments are the answers and
            the name of the run. None if there is no such program.
        serving: Export and local serving of models; None if models of the task are not exported.
    """

    name: str
    query: tuple[QueryOption, ...] = ()
    answer: Callable[[TrainedRun, Mapping[str, str], int], Answers] | None = None
    examples: Callable[[TrainedRun], Sequence[Example]] | None = None
    clusters: "Callable[[Checkpoint], Mapping[str, str]] | None" = None
    sections: Callable[[Sequence["RunRecord"]], Iterable["Section"]] = lambda records: ()
    commands: tuple[CommandRef, ...] = ()
    everybody: Callable[[TrainedRun, Mapping[str, str]], Iterable[Mapping[str, str]]] | None = None
    to_yaml: Callable[[Answers, str], str] | None = None
    serving: ServingRef | None = None
