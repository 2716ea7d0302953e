"""Typed report of `fedloom check`; it holds no row of the data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from client.data.summary import Dropped, Nouns
from common.arrays import Ints


@dataclass(frozen=True)
class FileReport:
    """Form of one table.

    Args:
        path: File.
        rows: Rows with text.
        blank: Rows without any text.
        separator: Character between cells; empty if the form has none.
        has_header: False if the columns are named by their position.
        aliases: Title -> column that it is read as, where they are spelt differently.
        ignored: Titles of columns that are not read.
        decisions: Decimal marks and forms of dates, each with a cell.
    """

    path: str
    rows: int
    blank: int
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
        rows: Rows of all tables, blank ones included.
        dropped: Rows that are not used, by reason.
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
    rows: int
    dropped: tuple[Dropped, ...]
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
