"""Check of a data source before training."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from client.data.dataset import AnyDataset
from client.data.partition_column import COLUMNS
from client.data.read import partition_read, read_all
from client.data.summary import DataSummary, Dropped, amount
from client.data.tables.decisions import aliases_of, decisions, ignored_columns, iso, separator_of, time_range
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, TableSchema
from client.data.tables.table import Table
from client.data.tables.titles import normalize_title
from client.tasks.registry import CLIENT_TASKS
from client.tasks.spec import AnyClientTask
from common.errors import NothingYetError
from common.text import count
from deploy.data_report import ClientShare, DataReport, FileReport, LearningReport, Quantiles


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
    dataset = read_all(task, data, dialect=replace(dialect, observe=tables.append))
    columns = {normalize_title(title) for title in ([dialect.partition] if dialect.partition else COLUMNS)}
    files = tuple(_file_report(table, kind.schema, columns if dataset.clients else set()) for table in tables)
    ends = [end for table in tables for end in time_range(table, kind.schema) or ()]
    summary = kind.summarize(kind.spec.options(), dataset, tables) if kind.summarize else None
    dropped = (*_blank_rows(tables), *(summary.dropped if summary else ()))
    parts = partition_read(task, data, dataset, clients, dialect) if clients or dataset.clients else ()
    return DataReport(
        task=task,
        data=data,
        files=files,
        rows=sum(file.rows + file.blank for file in files),
        dropped=dropped,
        notes=tuple(note for note in _notes(dataset) if not any(one.repeats(note) for one in dropped)),
        unit=kind.unit,
        units=len(dataset.units),
        first=iso(min(ends)) if ends else "",
        last=iso(max(ends)) if ends else "",
        learning=_learning(summary, kind.unit[0]) if summary and len(summary.records) else None,
        clients=tuple(_shares(kind, parts)),
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
        blank=table.blank,
        separator=separator_of(table),
        has_header=table.cells.header_line > 0 or not table.cells.delimiter,
        aliases=aliases_of(table),
        ignored=tuple(title for title in ignored_columns(table) if normalize_title(title) not in read),
        decisions=tuple(decisions(table, schema)),
    )


def _notes(dataset: AnyDataset) -> Iterator[str]:
    """Yield the notes of the reader, and a note on clients that the source brings."""
    yield from dict.fromkeys(dataset.notes)
    if dataset.clients:
        yield f"the partition column makes {count(len(dataset.clients), 'client')}"


def _blank_rows(tables: Sequence[Table]) -> Iterator[Dropped]:
    """Yield the rows without text of all tables."""
    if blank := sum(table.blank for table in tables):
        table = next(table for table in tables if table.blank)
        gaps = np.flatnonzero(table.rows != np.arange(len(table)))
        row = int(gaps[0]) if len(gaps) else len(table)
        place = f"{table.cells.unit} {table.cells.place_of(row)}"
        example = f"{table.path}, {place}" if len(tables) > 1 else place
        yield Dropped(blank, ("row", "rows"), "without any text skipped", example)


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


def _shares(kind: AnyClientTask, parts: Sequence[AnyDataset]) -> Iterator[ClientShare]:
    if not kind.summarize:
        return
    for k, part in enumerate(parts):
        summary = kind.summarize(kind.spec.options(), part, ())
        yield ClientShare(f"client-{k}", len(part.units), int(summary.train.sum()), int(summary.test.sum()))
