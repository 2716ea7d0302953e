"""Columns that a task reads from a table, and how its owner's file spells them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, cast, get_args

from common.errors import ConfigError

if TYPE_CHECKING:
    from client.data.tables.table import Table

Kind = Literal["text", "number", "time"]
Decimal = Literal["auto", "point", "comma"]
Dates = Literal["auto", "iso", "unix", "excel", "dmy", "mdy"]

PARTITION_MARK = "\x1f"
"""Character between the value of a partition column and the name of a unit, while both are one text."""


@dataclass(frozen=True)
class Column:
    """Column of a table.

    Args:
        name: Name that the task uses.
        kind: Type of its cells.
        aliases: Further titles that files give it.
        required: True if every table has it; see also `TableSchema.layouts`.
        blank: Cells without a value are errors, or missing values.
        many: True if a cell may hold several values.
    """

    name: str
    kind: Kind
    aliases: tuple[str, ...] = ()
    required: bool = True
    blank: Literal["refuse", "missing"] = "refuse"
    many: bool = False


@dataclass(frozen=True)
class TableSchema:
    """Columns that a task reads from a table.

    Args:
        columns: Columns with a name of their own.
        rest: Further columns are ignored, or each is a variable of numbers, whose cells may be missing.
        layouts: Alternative sets of required columns, of which a table has at least one.
        positions: Names of the columns of a file without a header; the last ones may be absent.
        unit: Name of the column that names the units of data; empty if a table cannot be partitioned by a column.
        clock: Times are instants in UTC, or readings of a local clock, whose offset from UTC is dropped.
    """

    columns: tuple[Column, ...]
    rest: Literal["ignore", "numbers"] = "ignore"
    layouts: tuple[tuple[str, ...], ...] = ()
    positions: tuple[str, ...] = ()
    clock: Literal["utc", "wall"] = "utc"
    unit: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Sets of columns, one of which a table must have."""
        required = tuple(column.name for column in self.columns if column.required)
        return tuple((*required, *layout) for layout in self.layouts) or (required,)


@dataclass(frozen=True)
class Dialect:
    """Form of an owner's files, as far as it is not detected.

    Args:
        columns: Name of a column -> its title in the files.
        decimal: Decimal mark of numbers.
        dates: Form of times.
        partition: Title of the column whose values are clients; empty for none.
        observe: Function that gets each table that is read; None for none.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    decimal: Decimal = "auto"
    dates: Dates = "auto"
    partition: str = ""
    observe: "Callable[[Table], None] | None" = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, columns: Iterable[str] = (), decimal: str = "auto", dates: str = "auto", partition: str = "") -> Self:
        """Return the dialect of options, of which each column is `NAME=TITLE`.

        Raises:
            ConfigError: An option has no such form or value.
        """
        pairs = [column.partition("=") for column in columns]
        for name, mark, title in pairs:
            if not (name.strip() and mark and title.strip()):
                raise ConfigError(f"--column {name}{mark}{title}: write NAME=TITLE, such as user=Customer")
        for option, value, values in (("decimal", decimal, get_args(Decimal)), ("dates", dates, get_args(Dates))):
            if value not in values:
                raise ConfigError(f"--{option} {value!r}: write one of {', '.join(values)}")
        named = {name.strip(): title.strip() for name, _, title in pairs}
        return cls(named, cast(Decimal, decimal), cast(Dates, dates), partition.strip())

    @property
    def options(self) -> tuple[str, ...]:
        """Options of a command that stand for this dialect."""
        words = [word for name, title in self.columns.items() for word in ("--column", f"{name}={title}")]
        words += ["--decimal", self.decimal] if self.decimal != "auto" else []
        words += ["--dates", self.dates] if self.dates != "auto" else []
        return tuple(words)

    def check(self, *schemas: TableSchema) -> None:
        """Accept the names of columns that one of the schemas has.

        Raises:
            ConfigError: A name belongs to none of them.
        """
        names = dict.fromkeys(name for schema in schemas for name in schema.names)
        for name in self.columns:
            if name not in names and all(schema.rest == "ignore" for schema in schemas):
                raise ConfigError(f"--column {name}=…: no such column; the task reads {', '.join(names)}")


DEFAULT_DIALECT = Dialect()
"""Files whose form is detected."""
