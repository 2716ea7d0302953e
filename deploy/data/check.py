"""Check of a data source before training: its report, which holds no row of the data."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from client.data.dataset import AnyDataset, DataSummary
from client.data.read import COLUMNS, partition_read, read_all
from client.data.summary import aliases_of, amount, decisions, ignored_columns, iso, separator_of
from client.data.tables.account import Nouns, Reading, RowAccount
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, TableSchema, escape, normalize_title
from client.data.tables.table import Table
from client.data.tables.times import FIRST
from client.tasks.registry import CLIENT_TASKS, AnyClientTask
from common.arrays import Ints
from common.errors import NothingYetError
from common.text import count


@dataclass(frozen=True)
class FileReport:
    """Form of one table.

    Args:
        path: File.
        rows: Rows that are read.
        separator: Character between cells; empty if the form has none.
        has_header: False if the columns are named by their position.
        aliases: Title -> column that it is read as, where they are spelt differently.
        ignored: Titles of columns that are not read.
        decisions: Decimal marks and forms of dates, each with a cell.
    """

    path: str
    rows: int
    separator: str
    has_header: bool
    aliases: Mapping[str, str]
    ignored: tuple[str, ...]
    decisions: tuple[str, ...]


@dataclass(frozen=True)
class Quantiles:
    """Distribution of a number over units; each quantile is the number of some unit."""

    least: int
    quarter: int
    median: int
    three_quarters: int
    most: int

    @classmethod
    def of(cls, values: Ints) -> "Quantiles":
        """Return the quantiles of at least one value."""
        return cls(*(int(value) for value in np.quantile(values, [0, 0.25, 0.5, 0.75, 1], method="lower")))


@dataclass(frozen=True)
class ClientShare:
    """Examples of one client.

    Args:
        client: Name of the client.
        units: Number of its units.
        train: Examples to train on.
        test: Examples held out for the test.
    """

    client: str
    units: int
    train: int
    test: int


@dataclass(frozen=True)
class LearningReport:
    """Records of units, and examples that training makes of them.

    Args:
        totals: Noun, singular -> number, such as devices.
        record: Noun of the records.
        records: Records of a unit.
        example: Noun of the examples.
        train: Examples that a unit trains on.
        test: Examples that a unit holds out.
        trainable: Number of units with something to train on.
        tested: Number of units that hold something out.
        median: Sentence on a client with the median unit.
        need: Advice for units without examples.
        remarks: Sentences about single units, which they name.
    """

    totals: Mapping[str, int]
    record: Nouns
    records: Quantiles
    example: Nouns
    train: Quantiles
    test: Quantiles
    trainable: int
    tested: int
    median: str
    need: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class DataReport:
    """Result of checking a data source.

    Args:
        task: Task of the data.
        data: Source.
        files: Tables that were read; empty for sets in a published form.
        reading: Rows that were kept, merged and left out; None for sources without rows.
        notes: Further messages of the reader.
        unit: Noun of the units.
        units: Number of units.
        first: First date; empty without dates.
        last: Last date.
        learning: Records and examples; None if the task cannot summarize data.
        clients: Examples of each client, if a number of clients was given.
        vocabulary: Vocabulary of the data, as JSON text.
    """

    task: str
    data: str
    files: tuple[FileReport, ...]
    reading: Reading | None
    notes: tuple[str, ...]
    unit: Nouns
    units: int
    first: str
    last: str
    learning: LearningReport | None
    clients: tuple[ClientShare, ...]
    vocabulary: str

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object without the vocabulary."""
        found = asdict(self)
        del found["vocabulary"]
        return found


def check_data(task: str, data: str, clients: int = 0, dialect: Dialect = DEFAULT_DIALECT) -> DataReport:
    """Read a data source as training does, and report what training would learn from.

    Args:
        task: Task of the data.
        data: Source of the data.
        clients: Number of clients among which to partition it; 0 for none.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data cannot be read or partitioned.
    """
    kind, tables = CLIENT_TASKS[task], list[Table]()
    account = RowAccount(places=True)
    dataset = read_all(task, data, dialect=replace(dialect, observe=tables.append, account=account))
    reading = dataset.reading
    columns = {normalize_title(title) for title in ([dialect.partition] if dialect.partition else COLUMNS)}
    files = tuple(_file_report(table, kind.schema, columns if dataset.clients else set()) for table in tables)
    ends = [end for end in (reading.first, reading.last) if end is not None and end >= FIRST] if reading else []
    summary = kind.summarize(kind.spec.options(), dataset) if kind.summarize else None
    partitions = partition_read(task, data, dataset, clients, dialect) if clients or dataset.clients else ()
    notes = list(dict.fromkeys(dataset.notes))
    if dataset.clients:
        notes.append(f"the partition column makes {count(len(dataset.clients), 'client')}")
    return DataReport(
        task=task,
        data=data,
        files=files,
        reading=reading,
        notes=tuple(note for note in notes if note not in set(map(str, reading.dropped if reading else ()))),
        unit=kind.unit,
        units=len(dataset.units),
        first=iso(min(ends)) if ends else "",
        last=iso(max(ends)) if ends else "",
        learning=_learning(summary, kind.unit[0]) if summary and len(summary.records) else None,
        clients=tuple(_shares(kind, partitions)),
        vocabulary=dataset.vocabulary.to_json(),
    )


def require_trainable(report: DataReport) -> None:
    """Accept data in which somebody has something to train on.

    Raises:
        NothingYetError: Nobody has.
    """
    if report.learning is None or report.learning.trainable:
        return
    message = f"no {report.unit[0]} of {report.units:,} has {report.learning.example[1]} to train on"
    raise NothingYetError(f"{message}; add {report.learning.record[1]} ({report.learning.need})", report.data)


def _file_report(table: Table, schema: TableSchema, read: set[str]) -> FileReport:
    return FileReport(
        path=str(table.path),
        rows=len(table),
        separator=separator_of(table),
        has_header=table.cells.header_line > 0 or not table.cells.delimiter,
        aliases=aliases_of(table),
        ignored=tuple(title for title in ignored_columns(table) if normalize_title(title) not in read),
        decisions=tuple(decisions(table, schema)),
    )


def _learning(summary: DataSummary, unit: str) -> LearningReport:
    """Return the report on at least one unit."""
    example = summary.example or summary.record
    middle = int(np.argsort(summary.records, kind="stable")[(len(summary.records) - 1) // 2])
    records, train, test = (int(values[middle]) for values in (summary.records, summary.train, summary.test))
    return LearningReport(
        totals=dict(summary.totals),
        record=summary.record,
        records=Quantiles.of(summary.records),
        example=example,
        train=Quantiles.of(summary.train),
        test=Quantiles.of(summary.test),
        trainable=int((summary.train > 0).sum()),
        tested=int((summary.test > 0).sum()),
        median=(
            f"a client with the median {unit} ({amount(records, summary.record)}) trains on "
            f"{amount(train, example)} and holds out {test:,} for the test"
        ),
        need=summary.need,
        remarks=summary.remarks,
    )


def _shares(kind: AnyClientTask, partitions: Sequence[AnyDataset]) -> Iterator[ClientShare]:
    if not kind.summarize:
        return
    for k, part in enumerate(partitions):
        summary = kind.summarize(kind.spec.options(), part)
        yield ClientShare(f"client-{k}", len(part.units), int(summary.train.sum()), int(summary.test.sum()))


EXAMPLE = re.compile(r" \('.*' is .*\)$", re.MULTILINE)
"""Cell and value of a decision, which differ between files of one form."""
MOST_FILES, MOST_TITLES, MOST_CLIENTS = 10, 12, 10
"""Forms of files, ignored columns and clients that are shown."""


def lines_of(report: DataReport) -> Iterator[str]:
    """Yield the lines of a report."""
    yield f"{escape(report.data, 200)} as data of task {report.task}"
    yield ""
    yield from _rows(report)
    totals = report.learning.totals if report.learning else {}
    contents = [amount(report.units, report.unit), *(count(number, noun) for noun, number in totals.items())]
    dates = f"; {report.first} to {report.last}" if report.first else ""
    yield f"{', '.join(contents)}{dates}"
    yield from _forms(report.files)
    if report.learning:
        yield from _learning_lines(report.learning, report)
    yield from _clients(report)


def _rows(report: DataReport) -> Iterator[str]:
    if report.reading:
        files = f" from {count(len(report.files), 'file')}" if len(report.files) > 1 else ""
        yield f"{count(report.reading.rows, 'row')} read{files}: {report.reading}"
    for dropped in report.reading.dropped if report.reading else ():
        yield f"  {dropped}{f'; the first: {dropped.example}' if dropped.example else ''}"
    for note in report.notes:
        yield f"  {note}"


def _forms(files: tuple[FileReport, ...]) -> Iterator[str]:
    """Yield how files were read; equal forms once."""
    groups: dict[str, list[FileReport]] = {}
    for file in files:
        groups.setdefault(EXAMPLE.sub("", "\n".join(_form(file))), []).append(file)
    for group in list(groups.values())[:MOST_FILES]:
        if form := list(_form(group[0])):
            more = f" and {len(group) - 1} more" if group[1:] else ""
            yield ""
            yield "Read as" if len(groups) == 1 else f"Read as, in {group[0].path}{more}"
            yield from (f"  {line}" for line in form)
    if len(groups) > MOST_FILES:
        yield f"… and {len(groups) - MOST_FILES} further forms of files"


def _form(file: FileReport) -> Iterator[str]:
    if file.separator:
        yield f"cells separated by {file.separator if file.separator.isalpha() else repr(file.separator)}"
    if not file.has_header:
        yield "no header: columns by their position"
    for title, name in file.aliases.items():
        yield f"column '{title}' is {name}"
    yield from file.decisions
    if file.ignored:
        more = [f"and {len(file.ignored) - MOST_TITLES} more"][: len(file.ignored) > MOST_TITLES]
        yield f"not read: {', '.join([*(f'{title!r}' for title in file.ignored[:MOST_TITLES]), *more])}"


def _learning_lines(learning: LearningReport, report: DataReport) -> Iterator[str]:
    yield ""
    yield _distribution(learning.record[1], learning.records, report.unit[1])
    if learning.example != learning.record:
        yield _distribution(f"{learning.example[1]} to train on", learning.train, report.unit[1])
    yield f"{learning.median[0].upper()}{learning.median[1:]}."
    for number, purpose in ((learning.trainable, "to train on"), (learning.tested, "for the test")):
        if not number:
            yield f"No {report.unit[0]} has {learning.example[1]} {purpose}."
        elif number < report.units:
            lack = amount(report.units - number, ("has", "have"))
            yield f"{lack.replace(' ', f' of {report.units:,} {report.unit[1]} ', 1)} no {learning.example[1]} {purpose}."
    if min(learning.trainable, learning.tested) < report.units:
        yield f"Note: {learning.need}."
    for remark in learning.remarks:
        yield f"  {remark}"


def _distribution(noun: str, found: Quantiles, units: str) -> str:
    """Return quantiles over units in one line."""
    return (
        f"{noun[0].upper()}{noun[1:]} of the {units}: least {found.least:,}, quarter {found.quarter:,}, "
        f"median {found.median:,}, three quarters {found.three_quarters:,}, most {found.most:,}"
    )


def _clients(report: DataReport) -> Iterator[str]:
    """Yield the clients with too little."""
    if not report.clients:
        return
    example = report.learning.example if report.learning else ("example", "examples")
    poor = [client for client in report.clients if not (client.train and client.test)]
    yield ""
    yield f"With {count(len(report.clients), 'client')}: " + (
        f"{len(poor):,} would have too little" if poor else f"each has {example[1]} to train on and for the test"
    )
    for client in poor[:MOST_CLIENTS]:
        units, examples = amount(client.units, report.unit), amount(client.train, example)
        yield f"  {client.client} ({units}): {examples} to train on, {client.test:,} for the test"
    if len(poor) > MOST_CLIENTS:
        yield f"  … and {len(poor) - MOST_CLIENTS} more"
