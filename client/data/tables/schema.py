"""Columns of tables: cells of a file, the schema of a task, and the title that stands for each column.

With codes that stand for names, and errors about cells.
"""

import codecs
import difflib
import re
import shlex
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal, Self, TypeVar, cast, get_args

import numpy as np

from client.data.tables.files import Content
from common.arrays import Flags, Ints
from common.errors import ConfigError, DataError
from common.options import kebab
from common.text import count, one_name

CELL_LENGTH, TITLE_LENGTH = 40, 80
"""Characters that are shown."""
LEAVE_OUT, LEAVE_EMPTY = "leave the row out", "leave the cell empty"
"""Remedies, of which the second serves where a value may be missing."""


class CellError(Exception):
    """Cells of a column that hold no value of its kind.

    Args:
        wrong: R flags, at least one of which is true.
        problem: Predicate of the sentence about the first of them; empty if it holds no value.
        remedy: What the owner can do.
    """

    def __init__(self, wrong: Flags, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.wrong, self.problem, self.remedy = wrong, problem, remedy

    @property
    def row(self) -> int:
        """First of the rows, from 0."""
        return int(self.wrong.argmax())

    def message(self, cell: str) -> str:
        """Return the sentence about the first of the cells, which holds this text."""
        what = f"'{cell}'" if cell else "a cell" if self.problem else "empty cell"
        what += f" {self.problem}" if self.problem else " stands for a missing value" if cell else ""
        return f"{what} ({self.wrong.sum():,} of {count(len(self.wrong), 'cell')}); {self.remedy}"


def escape(text: str, limit: int = TITLE_LENGTH) -> str:
    """Escape what does not print, and cut at a number of characters."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


NameT = TypeVar("NameT", bound=Hashable)
RowsT = TypeVar("RowsT")
Codes = Ints

LARGEST = 2**62
"""Bound of combined codes; larger ones are ranked first."""


def index_names(lists: Sequence[Sequence[NameT]]) -> dict[NameT, int]:
    """Return every name of several lists -> its code, by first appearance."""
    return {name: k for k, name in enumerate(dict.fromkeys(name for names in lists for name in names))}


def recode(code: Codes, names: Sequence[NameT], index: Mapping[NameT, int]) -> Codes:
    """Return codes into `names` as codes by `index`; −1 stays: it picks the last entry."""
    return np.array([*(index[name] for name in names), -1], np.int64)[code]


def join_rows(files: Sequence[RowsT], coded: Mapping[str, str]) -> RowsT:
    """Return several files' rows as one; equal names are the same.

    Args:
        files: Dataclasses of columns and of names; other fields are those of the first file.
        coded: Column of codes -> field of the names for which they stand.
    """
    index = {names: index_names([getattr(rows, names) for rows in files]) for names in {*coded.values()}}
    joined: dict[str, Any] = {names: list(index[names]) for names in index}
    for column in (name for name, value in vars(files[0]).items() if isinstance(value, np.ndarray)):
        arrays = [getattr(rows, column) for rows in files]
        if names := coded.get(column):
            arrays = [
                recode(code, getattr(rows, names), index[names]) for code, rows in zip(arrays, files, strict=True)
            ]
        joined[column] = np.concatenate(arrays)
    first: Any = files[0]
    return cast(RowsT, replace(first, **joined))


def sort_unique(values: Codes) -> Codes:
    """Return values in order, each once; faster than `numpy.unique` where most are distinct."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]


def combine_codes(*columns: Codes) -> Codes:
    """Return R numbers for several columns of R codes, ordered as the rows of codes are."""
    key: Codes = np.zeros(len(columns[0]), np.int64)
    for column in columns if len(key) else ():
        if _span(key) * _span(column) >= LARGEST:
            key, column = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (key, column))
        low = column.min()
        key = (key - key.min()) * (column.max() - low + 1) + (column - low)
    return key


def _span(column: Codes) -> int:
    return int(column.max()) - int(column.min()) + 1


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """Cells of a file, as columns of Arrow.

    Args:
        content: File.
        titles: Titles of the columns.
        header_line: One-based line of the titles, 0 without one.
        delimiter: Character between cells, empty without one.
        lists: Title -> type of each column whose cells hold several values, such as `token_seq`.
        hidden: Places of columns that the owner ignores.
        footers: Lines below the last row that are no rows.
        unit: Noun of a row's place.
    """

    content: Content
    titles: Sequence[str]
    header_line: int = field(default=0, kw_only=True)
    delimiter: str = field(default="", kw_only=True)
    lists: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    hidden: frozenset[int] = field(default=frozenset(), kw_only=True)
    footers: int = field(default=0, kw_only=True)
    unit: Literal["line", "row"] = field(default="row", kw_only=True)

    def titled(self) -> Iterator[tuple[int, str]]:
        """Yield places and titles of the columns that may be read."""
        return ((k, title) for k, title in enumerate(self.titles) if k not in self.hidden)

    @abstractmethod
    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: The file is malformed.
        """

    def place_of(self, row: int) -> int:
        """Return the one-based place of a row counted from 0."""
        return row + 1

    def header_error(self, message: str, column: str = "") -> DataError:
        """Return the error about the titles."""
        return DataError(message, self.content.path, self.header_line, column)


Kind = Literal["text", "number", "time"]
Clock = Literal["utc", "wall"]
Decimal = Literal["auto", "point", "comma"]
Dates = Literal["auto", "iso", "unix", "excel", "dmy", "mdy", "ymd", "order"]

CLOCK = "\x1fclock"
"""End of the name of a further column of times, whose dates have a column of their own; repeated."""
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
        wide: Names of the titles and of the cells of a table with a column for each of these titles.
    """

    columns: tuple[Column, ...]
    rest: Literal["ignore", "numbers"] = "ignore"
    layouts: tuple[tuple[str, ...], ...] = ()
    positions: tuple[str, ...] = ()
    clock: Clock = "utc"
    unit: str = ""
    wide: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return a column by name; further ones hold numbers."""
        others = (Column(name, "number", required=False, blank="missing"),)
        return next(column for column in (*self.columns, *others) if column.name == name)

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Sets of columns, one of which a table must have."""
        required = tuple(column.name for column in self.columns if column.required)
        return tuple((*required, *layout) for layout in self.layouts) or (required,)


ITEM, TITLE = "item", "title"

TITLE_COLUMNS = (
    Column(ITEM, "text", ("itemid", "asin")),
    Column(TITLE, "text", ("movietitle", "itemname", "name"), required=False, blank="missing", many=True),
)
"""Columns of a table of items."""


@dataclass(frozen=True)
class Dialect:
    """Form of an owner's files, as far as it is not detected.

    Args:
        columns: Name of a column -> its title in the files.
        decimal: Decimal mark of numbers.
        dates: Form of times.
        partition: Title of the column whose values are clients; empty for none.
        skip_lines: Lines above the header.
        ignore: Titles of columns that are not read.
        drop_empty: Titles of columns; rows without a value there are left out.
        where: `TITLE=VALUE` of the rows that are read; of several values of one column any.
        missing: Texts and numbers that stand for a missing value; `none` if no number does.
        encoding: Encoding of text that is not UTF-8.
        wide: True if each further column is a sensor.
        observe: Function that gets each table that is read; None for none.
        account: RowAccount of the rows; None for none.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    decimal: Decimal = "auto"
    dates: Dates = "auto"
    partition: str = ""
    skip_lines: int = 0
    ignore: tuple[str, ...] = ()
    drop_empty: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    encoding: str = ""
    wide: bool = False
    observe: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    account: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        columns: Iterable[str] = (),
        decimal: str = "auto",
        dates: str = "auto",
        partition: str = "",
        encoding: str = "",
        **further: Any,
    ) -> Self:
        """Return the dialect of options, of which each column is `NAME=TITLE`; further ones are its fields.

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
        if encoding and not _is_encoding(encoding):
            raise ConfigError(
                f"--encoding {encoding!r}: no such encoding; write one such as cp1252, latin-1 or shift_jis"
            )
        if wrong := [text for text in further.get("where") or () if "=" not in text]:
            raise ConfigError(f"--where {wrong[0]}: write COLUMN=VALUE, such as event=view")
        named = {name.strip(): title.strip() for name, _, title in pairs}
        listed = {name: tuple(value or ()) for name, value in further.items() if name in LISTS}
        return cls(
            named,
            cast(Decimal, decimal),
            cast(Dates, dates),
            partition.strip(),
            encoding=encoding,
            **{**further, **listed},
        )

    def to_fields(self) -> dict[str, Any]:
        """Return what differs from the default as JSON values, the inverse of `of`."""
        fields = {name: value for name, value in vars(self).items() if name not in ("observe", "account")}
        found = {name: value for name, value in fields.items() if value != getattr(DEFAULT_DIALECT, name)}
        return found | (
            {"columns": [f"{name}={title}" for name, title in self.columns.items()]} if self.columns else {}
        )

    @property
    def notes(self) -> list[str]:
        """Remarks of the account, or a list that nobody reads."""
        return self.account.notes if self.account else []

    @property
    def options(self) -> tuple[str, ...]:
        """Options of a command that stand for this dialect."""
        words = [word for name, title in self.columns.items() for word in ("--column", f"{name}={title}")]
        words += ["--decimal", self.decimal] if self.decimal != "auto" else []
        words += ["--dates", self.dates] if self.dates != "auto" else []
        words += [word for name in LISTS for value in getattr(self, name) for word in (f"--{kebab(name)}", value)]
        words += ["--skip-lines", str(self.skip_lines)] if self.skip_lines else []
        words += ["--encoding", self.encoding] if self.encoding else []
        return (*words, *["--wide"][: self.wide])

    def check(self, *schemas: TableSchema) -> None:
        """Accept names of columns that one of the schemas has, and `--wide` where it applies.

        Raises:
            ConfigError: A column has a name that none of the schemas has, or `--wide` does not apply.
        """
        names = dict.fromkeys(name for schema in schemas for name in schema.names)
        for name in self.columns:
            if name not in names and all(schema.rest == "ignore" for schema in schemas):
                raise ConfigError(f"--column {name}=…: no such column; the task reads {', '.join(names)}")
        if self.wide and not any(schema.wide for schema in schemas):
            raise ConfigError("--wide applies to tables of readings and ratings alone; remove it")


LISTS = ("ignore", "drop_empty", "where", "missing")
"""Fields of a dialect that are options to be repeated."""


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name))
    except LookupError:
        return False


DEFAULT_DIALECT = Dialect()
"""Files whose form is detected."""


UNTITLED = re.compile(r"(Unnamed: \d+|__index_level_\d+__|index)?")
"""Titles of the index of a data frame."""
IGNORED = re.compile(r"[\s_.\-\"'\ufeff]")
"""Characters of a title that do not count, nor does its case."""
HOURS = ("hour", "hr", "hourofday", "timeofday", "clock", "hourending", "hourbeginning", "uhrzeit", "anfang", "hora")
"""Titles of the hours of a day, beside a column of days."""
DATE_PARTS = (("year",), ("month",), ("day", "dayofmonth"), (*HOURS, "time"), ("minute",), ("second",))
"""Titles of dates in separate columns, of which the first three are needed."""
COMPACT = r"(?:19|20)\d\d[01]\d[0-3]\d(?:[0-2]\d(?:[0-5]\d)?)?|\d{4}-?W\d\d"
FILE_NAME, ABOVE = "filename", "above"
"""Title for the name of the file; value of `--missing` for empty names that repeat the cell above."""
DATED = re.compile(rf"({COMPACT}|\d{{4}}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{{4}}|\d\d?[.]\d\d?[.]\d\d)(?!\d)")
"""Begin of a date."""
NEAR = 0.7
"""Least similarity of a title that may be meant."""


def normalize_title(title: str) -> str:
    """Return a title without case, blanks, `_`, `.`, `-`, quotes and byte-order mark."""
    return IGNORED.sub("", (title if title.isascii() else one_name(title)).casefold())


def match_titles(cells: Cells, schema: TableSchema, dialect: Dialect) -> dict[str, int]:
    """Return the place of each column of a table, by name; variables come last, in the file's order.

    Raises:
        DataError: A required column is missing, or two columns bear one name.
    """
    places = dict[str, int]()
    for name, title in dialect.columns.items():
        joined = [_titled(cells, part) for part in title.split("+") if part != FILE_NAME]
        if found := _titled(cells, title):
            places[name] = found[0]
        elif all(joined):
            places |= {name + k * CLOCK: part[0] for k, part in enumerate(joined)}
    for column in schema.columns:
        if column.name not in places and (found := _matched(cells, column, set(places.values()), dialect)):
            places |= {column.name + k * CLOCK: at for k, at in enumerate(found)}
    if schema.rest == "numbers":
        _find_index(cells, schema, places)
    _check_required(cells, schema, places, dialect)
    _check_single(cells, schema, places)
    variables = _variables(cells, schema, places) if schema.rest == "numbers" else {}
    return {name: k for name, k in places.items() if name.partition(CLOCK)[0] in schema.names} | variables


def find_names(titles: Iterable[str], schema: TableSchema, dialect: Dialect) -> set[str]:
    """Return the columns of the schema that titles name."""
    plain = {normalize_title(title) for title in titles} - {""}
    chosen = {name: normalize_title(title) for name, title in dialect.columns.items()}
    return {c.name for c in schema.columns if not plain.isdisjoint((*_spellings(c), chosen.get(c.name, "")))}


def _spellings(column: Column) -> list[str]:
    return [normalize_title(text) for text in (column.name, *column.aliases)]


def _titled(cells: Cells, title: str) -> list[int]:
    """Return the places of titles that are spelt like this one, an equal one first; `x#2` is the second."""
    plain, (base, _, number) = normalize_title(title), title.rpartition("#")
    alike = [k for k, other in cells.titled() if normalize_title(other) == plain]
    if not alike and base and number.isdigit():
        return [k for k, other in enumerate(cells.titles) if other == base][int(number) - 1 :][:1]
    return sorted(alike, key=lambda k: cells.titles[k] != title.strip())


def _matched(cells: Cells, column: Column, used: set[int], dialect: Dialect) -> list[int]:
    spellings = _spellings(column)
    found = [k for k, title in cells.titled() if k not in used and normalize_title(title) in spellings]
    found = found or [k for k in used if column.required and cells.titles[k] == column.name]  # twice, by an option
    plain = [normalize_title(cells.titles[k]) for k in found]
    if column.kind == "time" and sorted(plain) in (["date", "time"], ["date", "hour"], ["day", "time"]):
        return sorted(found, key=lambda k: normalize_title(cells.titles[k]) in ("time", "hour"))
    if column.kind == "time" and plain in ([], ["time"]) and (separate := _date_parts(cells)):
        return separate
    if column.kind == "time" and plain in (["date"], ["day"]):
        return found + [k for k, title in cells.titled() if normalize_title(title) in HOURS][:1]
    if len(found) > 1:
        first, second = (escape(cells.titles[k]) for k in found[:2])
        remedy = f"say --column {column.name}={quoted(cells.titles[found[0]])}"
        remedy = _second(cells, found[1]) if first == second else remedy
        raise cells.header_error(f"'{first}' and '{second}' both name the column {column.name}; {remedy}", column.name)
    if not found and dialect.columns.get(column.name, FILE_NAME) != FILE_NAME:
        asked = f"the title '{escape(dialect.columns[column.name])}' of --column {column.name}"
        raise cells.header_error(f"no column has {asked}; {_shown(cells)}", column.name)
    return found


def _date_parts(cells: Cells) -> list[int]:
    """Return the places of years, months, days, hours and so on; nothing without the first three."""
    plain = {normalize_title(title): k for k, title in cells.titled()}
    found = [next((plain[title] for title in titles if title in plain), -1) for titles in DATE_PARTS]
    found = found[: [*found, -1].index(-1)]
    return found if len(found) > 2 else []


def _second(cells: Cells, index: int) -> str:
    """Return the remedy for a title that an earlier column has too."""
    title = cells.titles[index]
    return f"rename one, or say --ignore {quoted(f'{title}#{cells.titles[: index + 1].count(title)}')}"


def _find_index(cells: Cells, schema: TableSchema, places: dict[str, int]) -> None:
    """Take the first column, if it has no title, for the times that a table of readings lacks."""
    times = next(column.name for column in schema.columns if column.kind == "time")
    if times not in places and cells.titles and UNTITLED.fullmatch(cells.titles[0]) and 0 not in cells.hidden:
        places[times] = 0


def _shown(cells: Cells) -> str:
    return f"the titles are {', '.join([*map(escape, cells.titles[:20]), *['…'] * (len(cells.titles) > 20)])}"


def _check_required(cells: Cells, schema: TableSchema, places: Mapping[str, int], dialect: Dialect) -> None:
    """Refuse a table that lacks a column of the alternative it comes nearest to."""
    given = {*places, *(name for name, title in dialect.columns.items() if title == FILE_NAME)}
    if any(given.issuperset(names) for names in schema.alternatives):
        return
    nearest = max(schema.alternatives, key=lambda names: sum(name in given for name in names) / len(names))
    name = next(name for name in nearest if name not in given)
    column = next(column for column in schema.columns if column.name == name)
    needed = ", or ".join(_listed(names) for names in schema.alternatives)
    free = {normalize_title(title): title for k, title in cells.titled() if k not in places.values() and title}
    near = [title for text in _spellings(column) for title in difflib.get_close_matches(text, free, n=1, cutoff=NEAR)]
    numbered = [one for one in free.values() if near and one.startswith(free[near[0]].rstrip("0123456789"))]
    if command := _options_of(",".join(cells.titles), schema):
        remedy = f"as a known export, say {command}"
    elif column.kind == "time" and (found := _dated(cells, {*places.values()})):
        remedy = f"'{escape(found)}' holds times: say --column {name}={quoted(found)}"
    elif len(numbered) > 1:
        remedy = f"say --column {name}s={quoted('+'.join(numbered), 10_000)}"
    elif near:
        remedy = f"'{escape(free[near[0]])}' is near: rename it, or say --column {name}={quoted(free[near[0]])}"
    else:
        remedy = f"the table needs {needed}: rename a column, or say --column {name}=TITLE; {_shown(cells)}"
        dates = [k for k, title in enumerate(cells.titles, start=1) if DATED.match(title)]
        if 0 < len(dates) < 3:
            option = f"--column {schema.names[0]}=column{dates[0] if schema.rest == 'numbers' else 1}"
            remedy = f"line {cells.header_line} is a row of data; write a line of titles above it, or say {option}"
        if "" in cells.titles[1:]:
            remedy += f"; if titles stand in line {cells.header_line + 1}, say --skip-lines {cells.header_line}"
        if not places and "session" in schema.names and (path := cells.content.path).suffix == ".csv":
            remedy += f"; if each line is a session, run mv '{path}' '{path.with_suffix('.txt')}'"
        if name == schema.unit:
            remedy += f"; if the file is of one {name}, say --column {name}={FILE_NAME}"
        if cells.header_line and len(cells.titles) == 1:
            remedy += f"; if line {cells.header_line} is no header, say --skip-lines {cells.header_line}"
    is_long = not schema.wide or any(re.match(r"-?\d+[.,]\d|-\d", title) for title in free.values())
    if schema.rest == "ignore" and len(free) > 2 and not is_long and places.keys().isdisjoint(schema.wide):
        remedy += f"; if each further column is an {schema.wide[0]}, say --wide"
    raise cells.header_error(f"no column '{name}'; {remedy}", name)


def _options_of(titles: str, schema: TableSchema) -> str:
    """Return the options with which a known export with these titles is read; nothing for another table."""
    exports = tomllib.loads(resources.files(__package__).joinpath("exports.toml").read_text("utf-8"))["options"]
    found = (options for pattern, options in exports if re.search(pattern, titles))
    return next((one for one in found if {*re.findall(r"--column (\w+)=", one)} <= {*schema.names}), "")


def _dated(cells: Cells, used: Collection[int]) -> str:
    """Return the title of the first free column of dates, and of hours beside it; empty without one."""
    free = [k for k, title in cells.titled() if k not in used and title]
    hours = [f"+{cells.titles[k]}" for k in free if normalize_title(cells.titles[k]) in HOURS]
    for k, column in zip(free, cells.take(free), strict=True) if free else ():
        first = str(column[0].as_py() if len(column) else "").strip()
        is_unix = re.match(r"1\d{9}(\d{3})?(\.|$)", first) and re.search("(?i)time|ts|date|epoch", cells.titles[k])
        if (DATED.match(first) or is_unix) and not DATED.match(cells.titles[k]):
            return cells.titles[k] + ("" if ":" in first.removesuffix(" 00:00:00") else "".join(hours[:1]))
    return ""


def _check_single(cells: Cells, schema: TableSchema, places: Mapping[str, int]) -> None:
    """Accept columns of lists only where a cell may hold several values."""
    for column in schema.columns:
        title = cells.titles[places[column.name]] if column.name in places else ""
        if title in cells.lists and not column.many:
            what = f"of type {cells.lists[title]}, several values a cell, but '{column.name}' needs one"
            raise cells.header_error(f"{what}; name another column with --column {column.name}=TITLE", escape(title))


def _variables(cells: Cells, schema: TableSchema, places: Mapping[str, int]) -> dict[str, int]:
    """Return every further column that has a title, under that title or the name that the owner gave it.

    Raises:
        DataError: Two have the same name.
    """
    renamed, variables = {k: name for name, k in places.items()}, dict[str, int]()
    for k, title in cells.titled():
        name = renamed.get(k, title)
        if not name or name in schema.names:
            continue
        if name in variables:
            raise cells.header_error(f"two columns have this name; {_second(cells, k)}", escape(name))
        variables[name] = k
    return variables


def find_column(cells: Cells, title: str, option: str, places: Mapping[str, int] | None = None) -> int:
    """Return the place of the column that an option names, by its title or by the name that the task uses.

    Raises:
        DataError: The table has no such column.
    """
    if found := _titled(cells, title):
        return found[0]
    if places and title in places:
        return places[title]
    raise cells.header_error(f"no column '{escape(title)}' for {option}; {_shown(cells)}")


def _listed(names: Sequence[str]) -> str:
    if len(names) > 8:
        return f"{len(names)} columns"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def quoted(title: str, limit: int = TITLE_LENGTH) -> str:
    """Return a title or a cell as a word of a command."""
    shown = escape(title, limit)
    if re.search(r"[\"$`\\]", shown):
        return shlex.quote(shown)
    return f'"{shown}"' if re.search(r"[^\w.-]", shown) else shown
