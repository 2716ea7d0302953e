"""Tables as typed columns, whatever the form of their file: text or Parquet."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow import types

from client.data.tables.account import ROWS, RowAccount
from client.data.tables.files import EXPANDED_LIMIT, Content, load, stem_of, suffix_of
from client.data.tables.schema import (
    ABOVE,
    CELL_LENGTH,
    CLOCK,
    DATE_PARTS,
    DATED,
    DEFAULT_DIALECT,
    FILE_NAME,
    LEAVE_EMPTY,
    LEAVE_OUT,
    PARTITION_MARK,
    UNTITLED,
    CellError,
    Cells,
    Column,
    Decimal,
    Dialect,
    TableSchema,
    escape,
    find_column,
    find_names,
    match_titles,
    normalize_title,
    quoted,
)
from client.data.tables.table import (
    LISTS,
    MARK,
    NUMBER,
    RECURS,
    Table,
    Unpivoted,
    cell_error,
    convert_distinct,
    drop_missing,
    items_of,
    join_names,
    match_cells,
    may_be_thousands,
    numbers_of,
    to_flags,
    to_numbers,
    to_text,
    try_cast,
)
from client.data.tables.text import SUFFIXES, Delimited, JsonLines, as_lines, is_object
from client.data.tables.times import FIRST, join_times, to_times
from common.arrays import Flags, Floats, Ints
from common.errors import DataError
from common.text import count, one_name

BATCH = 2**12
"""Rows decoded at a time."""


@dataclass(frozen=True, eq=False)
class Parquet(Cells):
    """Parquet, of which only the columns that are needed are decoded."""

    file: Any

    @classmethod
    def of(cls, content: Content) -> "Parquet":
        """Read the names of the columns.

        Raises:
            DataError: The file is damaged.
        """
        with _decoding(content):
            file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content.data))
            return cls(content, [one_name(name) for name in file.schema_arrow.names], file)

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: The file is damaged, or its columns exceed `EXPANDED_LIMIT` bytes.
        """
        with _decoding(self.content):
            names = [self.file.schema_arrow.names[k] for k in places]
            batches, size = list[Any](), 0
            for batch in self.file.iter_batches(BATCH, columns=names, use_threads=False):
                batches.append(batch)
                size += batch.nbytes
                if size > EXPANDED_LIMIT:
                    raise DataError(f"expands to more than {EXPANDED_LIMIT:,} bytes; split the file", self.content.path)
            schema = batches[0].schema if batches else self.file.schema_arrow
            table = pyarrow.Table.from_batches(batches, schema)
            table.validate(full=True)
            columns = [table.column(name).combine_chunks() for name in names]
            is_view = types.is_string_view  # of polars; most functions of pyarrow lack it
            return [one.cast(pyarrow.large_string()) if is_view(one.type) else one for one in columns]


@contextmanager
def _decoding(content: Content) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        message = f"cannot be read as Parquet ({type(error).__name__}); is the file complete?"
        raise DataError(message, content.path) from None


MOST_COLUMNS, LONGEST_CELL = 10_000, 10**6
"""Columns of a table, and bytes of a cell."""
NOT_SET = "(not set)"
"""Cell of Google Analytics for a name that is unknown."""
MOST_NAMED, MOST_WORDS = 4, 12
"""Texts without a value, and words of a scale, that an error names as options."""
SUMS = "(grand|row)?totals?|sum|average|avg|mean|median|std(dev)?|count|min|max|n|summe|gesamt|durchschnitt|mittelwert"
TOTALS = "(grand|sub)?[ -]?totals?"
CALENDAR = {"weekday", "dayofweek", "dow", "table"}.union(*DATE_PARTS)
PLACES = re.compile(r"(?i:lat(itude)?|lon|lng|long(itude)?|elevation|location|(.*[ _.-])?id)|.*[a-z]I[dD]")
"""Titles of what sums others up, repeats the time, and describes a sensor."""
SAMPLE, LISTED = 1_000, ("item", "item_a", "item_b")
"""Cells that are looked at first, and columns of one item a cell."""
WORDS, NO_VALUE = "text", ("is not a number", "is not a time", "is an infinite number", "has the unit", "has the sign")
"""Value of `--missing` for all cells that are no number or time, and problems of such cells."""
FEWEST = 10
"""Rows of a table whose row numbers are recognised."""
NINES, LIMITS = re.compile(r"9{2,}(\.9+)?|9\.?9*e\+\d+"), (32767.0, 32768.0, 65535.0, 2.0**31 - 1, 2.0**31, 2.0**32 - 1)
"""Numbers that often stand for a missing value."""


def read_table(source: Path | Content, schema: TableSchema, dialect: Dialect = DEFAULT_DIALECT) -> Table:
    """Read the columns of a schema from a file in any form.

    Raises:
        DataError: The file is no table, lacks a column, or holds malformed cells; with the place and the cell.
    """
    content = source if isinstance(source, Content) else load(source, dialect.encoding, dialect.skip_lines)
    cells = detect_cells(content, schema, dialect)
    if not (dialect.wide and schema.rest == "ignore" and schema.wide):
        return to_table(cells, schema, dialect)
    return to_table(by_items(cells, schema, dialect), schema, replace(dialect, columns={}))


def by_items(cells: Cells, schema: TableSchema, dialect: Dialect, dates: Mapping[int, str] | None = None) -> Cells:
    """Return the cells with a row for each unit and item, or date, in place of a column for each of these.

    Raises:
        DataError: A column is missing, or may be no item, or names beside dates are not the only ones.
    """
    named = {name: k for k, title in cells.titled() for name in find_names([title], schema, dialect)}
    is_turned = not dates and schema.wide[0] in named and schema.unit not in named
    unit, item = (schema.unit, schema.wide[0])[:: -1 if is_turned else 1]
    others = [title for k, title in cells.titled() if k not in named.values() and not _is_about(title, wide=True)]
    asked = dialect.columns.get(unit, cells.titles[named[unit]] if unit in named else (*others, "")[0])
    names = [find_column(cells, one, "--column") for one in ([asked] if asked in cells.titles else asked.split("+"))]
    free = {k: title for k, title in cells.titled() if k not in (*names, *named.values())}
    about = {k for k, title in free.items() if UNTITLED.fullmatch(title) or _is_about(title, wide=True)}
    items = dates or {k: title for k, title in free.items() if k not in about}
    left = [f"column '{escape(free[k])}' names no {item} and is not read" for k in free.keys() - items if free[k]]
    dialect.notes.extend(sorted(left))
    first, *others = map(to_text, cells.take([*names[:1], *(places := sorted(free.keys() - items))]))
    texts = [k for k, text in zip(places, others, strict=True) if not pc.any(match_cells(text, NUMBER)).as_py()]
    if dates and texts and unit not in dialect.columns and len(first.unique().drop_null()) < len(first):
        joined = quoted("+".join(cells.titles[k] for k in (*names, *texts)))
        raise cells.header_error(f"names are missing or recur; say --column {unit}={joined}", escape(asked))
    long = Unpivoted.of(cells, names, items, schema.wide, dialect)
    chosen = long.columns[-1].is_valid() if dates else items_of(long, dialect)
    columns = [column.filter(chosen) for column in (join_names(long.columns[: len(names)]), *long.columns[-2:])]
    return replace(long, titles=[unit, item, schema.wide[1]], columns=columns, rows=long.rows[to_flags(chosen)])


def _is_about(title: str, *, wide: bool) -> bool:
    """Return True for a title of what repeats the time, or of sums in a wide table."""
    plain = normalize_title(title)
    is_time = plain in CALENDAR or title.lower().endswith(("_ts", "timestamp"))
    return is_time or (wide and re.fullmatch(SUMS, plain) is not None)


def detect_cells(content: Content, schema: TableSchema, dialect: Dialect = DEFAULT_DIALECT) -> Cells:
    """Recognise the form of a table, and its titles; columns that the owner ignores are hidden.

    Raises:
        DataError: It is no table, or lacks a column that the owner ignores.
    """
    content = content if content.is_parquet else as_lines(content)
    cells: Cells
    if content.is_parquet:
        cells = Parquet.of(content)
    elif suffix_of(content.path) in SUFFIXES or is_object(content.first_line()):
        cells = JsonLines.of(content)
    else:
        cells = Delimited.of(content, schema, dialect)
    return replace(cells, hidden=frozenset(find_column(cells, title, "--ignore") for title in dialect.ignore))


def to_table(cells: Cells, schema: TableSchema, dialect: Dialect = DEFAULT_DIALECT) -> Table:
    """Convert cells to the columns of a schema; the account gets the rows that are left out.

    Raises:
        DataError: A column is missing, or cells are malformed.
    """
    if len(cells.titles) > MOST_COLUMNS:
        number = count(len(cells.titles), "column")
        raise cells.header_error(f"{number}, more than {MOST_COLUMNS:,}; leave out those that the task does not read")
    account = dialect.account or RowAccount()
    places = match_titles(cells, schema, dialect)
    if not places:
        raise cells.header_error(f"none of the columns {', '.join(schema.names)}; name one with --column NAME=TITLE")
    texts = _texts(cells, places, schema, dialect)
    if schema.rest == "numbers":
        texts = _without_row_numbers(cells, schema, places, texts, dialect)
    dialect = _with_mark(cells, schema, places, texts, dialect)
    first, rows = _chosen_rows(cells, schema, dialect, places, texts, account)
    texts = texts if len(rows) == len(next(iter(texts.values()))) else {k: c.take(rows) for k, c in texts.items()}
    titles = {name: "+".join(cells.titles[k] for key, k in places.items() if _is_of(key, name)) for name in texts}
    columns = {}
    for name, text in texts.items():
        try:
            _check_lists(text, name, titles[name], schema, dialect)
            columns[name] = _converted(text, schema.column(name), dialect, schema, cells.delimiter)
        except CellError as error:
            others = [other for other in texts if other not in (*schema.names, name)]
            is_text = error.problem.startswith(NO_VALUE) and error.wrong.sum() == len(text) - _unfilled(text)
            if name not in schema.names and others and is_text:
                account.notes.append(f"column '{escape(titles[name])}' holds no number and is not read")
                continue
            can_go = any(set(names) <= texts.keys() - {name} for names in schema.alternatives)
            is_needed = not can_go or (name not in schema.names and not others)
            error.remedy = _remedy(error, schema.column(name), text, titles[name], is_needed=is_needed)
            raise cell_error(cells, titles[name], text, rows, error) from None
    texts = {name: texts[name] for name in columns}
    variables = tuple(name for name in columns if name not in schema.names)
    table = Table(cells, {name: titles[name] for name in columns}, texts, columns, variables, rows, first)
    for column in schema.columns:
        if column.kind == "time" and column.name in columns:
            account.dates(table.numbered, table.numbers(column.name))
    if dialect.partition:
        table = _partitioned(table, schema.unit, dialect.partition)
    if dialect.observe:
        dialect.observe(table)
    return table


def _texts(cells: Cells, places: Mapping[str, int], schema: TableSchema, dialect: Dialect) -> dict[str, Any]:
    """Return the cells of each column; dates and clock times in several columns as one."""
    texts = dict(zip(places, cells.take(list(places.values())), strict=True))
    stem, rows = stem_of(cells.content.path), len(next(iter(texts.values())))
    for name in [name for name, title in dialect.columns.items() if title.split("+")[0] == FILE_NAME]:
        day = DATED.search(stem) if schema.column(name).kind == "time" else None
        texts |= {name + CLOCK: texts.pop(name)} if name in texts else {}
        texts[name] = pyarrow.array([day[0] if day else stem] * rows, pyarrow.string())
    for name in [name for name in texts if name + CLOCK in texts and CLOCK not in name]:
        further = [to_text(texts.pop(key)) for key in list(texts) if _is_of(key, name) and key != name]
        first, is_name = to_text(texts[name]), schema.column(name).kind == "text"
        texts[name] = join_names([first, *further]) if is_name else join_times(first, further)
    if ABOVE in dialect.missing:
        begin = to_text(cells.take([0])[0])
        for name in [name for name in texts if schema.column(name).kind == "text"]:
            texts[name] = _repeated(to_text(texts[name]), begin)
    if WORDS not in dialect.missing:
        return texts
    return {name: _without_words(text, schema.column(name), cells, schema, dialect) for name, text in texts.items()}


def _repeated(text: Any, begin: Any) -> Any:
    """Return text with empty cells as those above, in rows that begin as the one above or with nothing."""
    begin, above = pc.fill_null_forward(begin), pc.fill_null_forward(text)
    same = pc.equal(pc.fill_null_forward(pc.if_else(text.is_valid(), begin, None)), begin)
    return pc.if_else(pc.fill_null(same, False), above, text)


def _check_lists(text: Any, name: str, title: str, schema: TableSchema, dialect: Dialect) -> None:
    """Accept a column of items, of which less than half of the cells seem to list several.

    Raises:
        CellError: Half or more have such a mark between names, of which some recur.
    """
    if name not in LISTED or name in dialect.columns or "none" in dialect.missing:
        return
    for cells in (to_text(part) for part in (text.slice(0, SAMPLE), text)):
        wrong = to_flags(match_cells(cells, rf"\S *({MARK}) *\S|\S,\S"))
        names = re.split(rf"{MARK}|,|\n", "\n".join(cells.filter(pyarrow.array(wrong)).to_pylist()))
        if 2 * wrong.sum() < max(len(cells) - cells.null_count, 4) or len({*names}) == len(names):
            return
    remedy = f"say --column {LISTS}={quoted(title)}" if LISTS in schema.names else "write a row for each"
    remedy += f", or say --column {name}={quoted(title)} if it is one name"
    raise CellError(wrong, "seems to list several items", remedy)


DECIMALS: dict[Decimal, str] = {
    "comma": r"^\D*(\d{1,3}(\.\d{3})+,\d+|\d+,(\d{1,2}|\d{4,})|0,\d+)\D*$",
    "point": r"^\D*(\d{1,3}(,\d{3})+\.\d+|\d+\.(\d{1,2}|\d{4,})|0?\.\d+)\D*$",
}
"""Decimal mark -> cells that show it."""


def _with_mark(
    cells: Cells, schema: TableSchema, places: Mapping[str, int], texts: Mapping[str, Any], dialect: Dialect
) -> Dialect:
    """Return the dialect with the only decimal mark of a file with semicolons, if 1.000 may be either."""
    kinds = {name: schema.column(name).kind for name in texts}
    asked = [text for name, text in texts.items() if kinds[name] == "number" and types.is_string(text.type)]
    if dialect.decimal != "auto" or cells.delimiter != ";" or not any(may_be_thousands(text).any() for text in asked):
        return dialect
    dated = {k for name, k in places.items() if kinds.get(name, "time") == "time"}
    columns = cells.take([k for k in range(len(cells.titles)) if k not in dated])
    found = [
        mark for mark, cell in DECIMALS.items() if any(pc.any(match_cells(text, cell)).as_py() for text in columns)
    ]
    if len(found) != 1:
        return dialect
    dialect.notes.append(f"numbers have a decimal {found[0]}, as other cells of the file show")
    return replace(dialect, decimal=found[0])


def _is_of(key: str, name: str) -> bool:
    return key.partition(CLOCK)[0] == name


def _chosen_rows(
    cells: Cells,
    schema: TableSchema,
    dialect: Dialect,
    places: Mapping[str, int],
    texts: Mapping[str, Any],
    account: RowAccount,
) -> tuple[int, Ints]:
    """Return the number of the file's first row, and the places of the rows that are read.

    Raises:
        DataError: None is left, or the table lacks a column that the owner names.
    """
    filled = _filled_rows(cells, [text for name, text in texts.items() if name in places], places.values())
    first = account.open(cells, len(filled) + cells.footers)
    account.leave(
        first + np.arange(len(filled), len(filled) + cells.footers), ROWS, "below the table (a footer) left out"
    )
    reasons = {"without any text skipped": ~filled}
    for column in schema.columns:
        if column.kind == "text" and column.name in texts and types.is_string(texts[column.name].type):
            reasons.setdefault(f"with '{NOT_SET}' left out", np.zeros(len(filled), bool))
            reasons[f"with '{NOT_SET}' left out"] |= to_flags(pc.equal(texts[column.name], NOT_SET))
    if cells.header_line and all(types.is_string(text.type) for text in texts.values()):
        same = [to_flags(pc.equal(texts[name], cells.titles[places[name]])) for name in texts if name in places]
        reasons["with the titles of the header again left out"] = np.all(same, axis=0)
    for name in [name for name in (schema.unit, *LISTED) if name in texts and types.is_string(texts[name].type)]:
        sums = to_flags(match_cells(texts[name], f"^(?i:{SUMS if dialect.wide else TOTALS})$"))
        reasons["of sums and means left out"] = reasons.get("of sums and means left out", False) | sums
    wanted: dict[str, Flags] = {}
    for title, _, value in (condition.partition("=") for condition in dialect.where):
        text = to_text(cells.take([find_column(cells, title, "--where", places)])[0])
        wanted[title] = wanted.get(title, False) | to_flags(pc.equal(text, one_name(value)))
    reasons |= {f"left out by --where {escape(title)}": ~flags for title, flags in wanted.items()}
    for title in dialect.drop_empty:
        k = find_column(cells, title, "--drop-empty", places)
        name = next((name for name in texts if places.get(name) == k), "")
        text = drop_missing(to_text(texts[name] if name else cells.take([k])[0]), dialect.missing)
        reasons[f"without a value of '{escape(title)}' left out (--drop-empty)"] = ~to_flags(text.is_valid())
    left = np.ones(len(filled), bool)
    for reason, out in reasons.items():
        if out.any():
            account.leave(first + np.flatnonzero(out), ROWS, reason)
            left &= ~out
    if not left.any():
        why = "has a header but no rows" if not filled.any() else f"has {count(int(filled.sum()), 'row')}, all left out"
        raise DataError(f"the file {why}", cells.content.path)
    return first, np.flatnonzero(left)


def _without_row_numbers(
    cells: Cells, schema: TableSchema, places: Mapping[str, int], texts: Mapping[str, Any], dialect: Dialect
) -> dict[str, Any]:
    """Return the columns without those that number rows, measure nothing or have no title, with a note."""
    places_of = {
        name: text for name, text in texts.items() if PLACES.fullmatch(name) and not types.is_nested(text.type)
    }
    sites = len(texts[schema.unit].unique()) if places_of and schema.unit in texts else 1
    about = {name for name, text in places_of.items() if len(text.unique()) <= sites}
    about |= {name for name in texts if _is_about(name, wide=dialect.wide)}
    blank = {name for name, text in texts.items() if _is_blank(text.slice(0, FEWEST)) and _is_blank(text)}
    found = {
        name: text
        for name, text in texts.items()
        if name in (*schema.names, *dialect.columns) or not (name in blank | about or _numbers_rows(name, text))
    }
    for spared in (about, set[str]()):  # a running number, or a sum, may be all that was measured
        if found.keys() <= set(schema.names):
            found |= {name: text for name, text in texts.items() if not (UNTITLED.fullmatch(name) or name in spared)}
    for name in [name for name in texts if name not in found]:
        what = "holds no number" if name in blank else "measures nothing" if name in about else "numbers the rows"
        dialect.notes.append(f"column '{escape(cells.titles[places[name]])}' {what} and is not read")
    unnamed = [k for k, title in cells.titled() if not title and k not in places.values()]
    filled = [
        k for k, column in zip(unnamed, cells.take(unnamed) if unnamed else (), strict=True) if _is_filled(column).any()
    ]
    dialect.notes.extend(f"column {k + 1} has no title and is not read" for k in filled)
    return found


def _is_blank(text: Any) -> bool:
    return 0 < len(text) == _unfilled(text)


def _numbers_rows(name: str, text: Any) -> bool:
    """Return True for the index of a data frame, and for the numbers from 0 or 1 on, in any order."""
    if UNTITLED.fullmatch(name) and name != "index":
        return True
    is_whole = not types.is_floating(text.type) and try_cast(text.slice(0, FEWEST), pyarrow.int64()) is not None
    if len(text) < FEWEST or not is_whole:
        return False
    numbers = try_cast(text, pyarrow.int64())
    if numbers is None or numbers.null_count:
        return False
    ordered = np.sort(numbers.to_numpy(zero_copy_only=False))
    return bool((ordered[0] in (0, 1) or PLACES.fullmatch(name)) and (np.diff(ordered) == 1).all())


def _exact_names(text: Any, column: Column, notes: list[str]) -> Any:
    """Return names without the point of whole numbers, such as 17.0, with a note, also on lost digits."""
    if pc.any(pc.ends_with(text, ".0")).as_py() and pc.all(match_cells(text, r"^\d+(\.0)?$")).as_py():
        notes.append(f"names of column '{column.name}' are numbers, read without '.0'")
        return pc.replace_substring(text, ".0", "")
    if lost := pc.sum(match_cells(text, r"^\d[.,]\d+E\+\d{2}$")).as_py():
        problem = "lost digits in a spreadsheet, so one name may stand for several; save the column as text"
        notes.append(f"{count(lost, 'cell')} of column '{column.name}' {problem}")
    return text


def _without_words(text: Any, column: Column, cells: Cells, schema: TableSchema, dialect: Dialect) -> Any:
    """Return cells with null for those that are no number or time, with a note; all if none is one."""
    try:
        _converted(text, column, dialect, schema, cells.delimiter)
    except CellError as error:
        if error.problem.startswith(NO_VALUE) and error.wrong.sum() < len(text) - _unfilled(text):
            number = count(int(error.wrong.sum()), "cell")
            dialect.notes.append(f"{number} of column '{column.name}' left out (--missing {WORDS})")
            return pc.if_else(pyarrow.array(error.wrong), None, text)
    return text


def _remedy(error: CellError, column: Column, text: Any, title: str, *, is_needed: bool) -> str:
    """Return the remedy of an error, with an option that leaves the cell, the row or the column out."""
    remedy = error.remedy.replace(LEAVE_OUT, LEAVE_EMPTY) if column.blank == "missing" else error.remedy
    drop = f"--drop-empty {quoted(column.name if '+' in title else title)}"
    if not error.problem:
        above = f", or --missing {ABOVE} if it repeats the cell above"
        is_repeated = column.kind == "text" and 5 * error.wrong.sum() > len(text) and not error.wrong[0]
        return f"{remedy}, or say {drop}{above * bool(is_repeated)}"
    if error.problem.endswith("without a date"):
        remedy = f"name the file by its date, such as 2024-03-01.csv, and say --column {column.name}="
        return remedy + quoted(f"{FILE_NAME}+{title}")
    if not error.problem.startswith(NO_VALUE):
        return remedy
    wrong = list(dict.fromkeys(str(cell).strip() for cell in text.filter(pyarrow.array(error.wrong)).to_pylist()))
    is_all = error.wrong.sum() == len(text) - _unfilled(text)
    is_word = column.kind == "number" and len(wrong) <= MOST_WORDS and (is_all or error.problem == NO_VALUE[0])
    if words := numbers_of(wrong, is_all=is_all) if is_word else {}:
        given = " ".join(f"--missing {quoted(f'{word}={number}')}" for word, number in words.items())
        remedy = f"say {given}, with the numbers that you mean"
    if is_all:  # no cell would be left
        ignored = " ".join(f"--ignore {quoted(part)}" for part in title.split("+"))
        remedy += f", or name another column with --column {column.name}=TITLE" * (column.required and not words)
        return remedy if is_needed else f"{remedy}, or say {ignored}"
    is_few = len(wrong) <= MOST_NAMED and max(map(len, wrong)) < CELL_LENGTH
    options = [f"--missing {quoted(cell)}" for cell in (wrong if is_few else [WORDS])]
    return f"{remedy}, or say {' '.join([*options, *[drop][:is_needed]])}"


def _partitioned(table: Table, unit: str, title: str) -> Table:
    """Return a table whose units are named by the value of a column and their own name.

    Raises:
        DataError: The table has no such column, a cell of it is empty, or the task has no column of units.
    """
    cells = table.cells
    if not unit:
        raise cells.header_error(f"tables of this task have no column of units; leave --partition {escape(title)} out")
    value = to_text(
        cells.take([find_column(cells, title, "--partition, and no scheme")])[0].take(pyarrow.array(table.rows))
    )
    if value.null_count:
        wrong = ~to_flags(value.is_valid())
        raise cell_error(cells, title, value, table.rows, CellError(wrong, "", f"fill it, or {LEAVE_OUT}"))
    names_of_units = table.columns[unit] if unit in table else pyarrow.nulls(len(table), pyarrow.string())
    names = pc.binary_join_element_wise(value, names_of_units.fill_null(""), PARTITION_MARK)
    return replace(
        table,
        titles={unit: title, **table.titles},
        texts={unit: value, **table.texts},
        columns={**table.columns, unit: names},
    )


def _converted(text: Any, column: Column, dialect: Dialect, schema: TableSchema, delimiter: str) -> Any:
    """Return cells in the kind of their column.

    Raises:
        CellError: Some are of another kind, or blank where that is refused.
    """
    of_numbers = dialect.dates in ("unix", "excel", "order") and not types.is_temporal(text.type)

    def convert(cells: Any) -> Any:
        if column.kind == "number" or of_numbers:
            if dialect.decimal == "auto" and delimiter == ";" and (wrong := may_be_thousands(cells)).any():
                raise CellError(
                    wrong, "has a decimal mark or a thousands separator", "say --decimal comma or --decimal point"
                )
            cells = to_numbers(cells, dialect.decimal, delimiter == ",", dialect.missing)
        return to_times(cells, dialect.dates, schema.clock, dialect.missing) if column.kind == "time" else cells

    _check_length(text)
    is_text = column.kind == "text"
    values = _exact_names(to_text(text), column, dialect.notes) if is_text else convert_distinct(text, convert)
    if column.blank == "refuse" and values.null_count:
        raise CellError(~to_flags(values.is_valid()), "", f"fill it, or {LEAVE_OUT}")
    if column.kind == "number" and schema.unit and "none" not in dialect.missing:
        _check_sentinels(values.to_numpy(zero_copy_only=False))
        zeros, least = to_flags(pc.equal(values, 0)), 0 if dialect.wide else 1  # 1 is the other end of likes
        if column.name in schema.wide and 2 * zeros.sum() > len(zeros) and (pc.max(values).as_py() or 0) > least:
            remedy = f"say --missing 0 --drop-empty {column.name} if it stands for no rating, else --missing none"
            raise CellError(zeros, "is the most frequent rating", remedy)
        if column.name in schema.wide and (pc.min(values).as_py() or 0) > FIRST:
            remedy = f"name another column with --column {column.name}=TITLE, such as column4, else say --missing none"
            raise CellError(to_flags(values.is_valid()), "seems to be a time in seconds", remedy)
    return values


def _check_sentinels(values: Floats) -> None:
    """Accept numbers of which none recurs far outside all others, as -999 for a missing value does.

    Raises:
        CellError: One does.
    """
    there = values[~np.isnan(values)]
    for extreme in (there.min(), there.max()) if len(there) else ():
        rest = there[there != extreme]
        if len(there) - len(rest) < RECURS or len(rest) < FEWEST:
            continue
        low, high = rest.min(), rest.max()
        apart, wide = max(low - extreme, extreme - high), high - low
        usual = NINES.fullmatch(f"{abs(extreme):g}") is not None or abs(extreme) in LIMITS
        is_sole = extreme in (-1, -9) and low >= 0
        if wide > 0 and extreme != 0 and (apart > 10 * wide or (usual and 2 * apart > wide) or is_sole):
            shown = f"{extreme:.12g}"
            remedy = f"say --missing {shown} if it stands for a missing value, else --missing none"
            raise CellError(values == extreme, "recurs far outside the other numbers", remedy)


def _check_length(text: Any) -> None:
    """Accept cells of up to `LONGEST_CELL` bytes.

    Raises:
        CellError: A cell is longer.
    """
    if types.is_string(text.type) or types.is_large_string(text.type):
        length = pc.binary_length(text)
        if (pc.max(length).as_py() or 0) > LONGEST_CELL:
            wrong = to_flags(pc.greater(length, LONGEST_CELL))
            raise CellError(wrong, f"is longer than {LONGEST_CELL:,} bytes", f"shorten it, or {LEAVE_OUT}")


def _filled_rows(cells: Cells, columns: Sequence[Any], places: Collection[int]) -> Flags:
    """Return the rows that hold any text, in the columns that are read or in others."""
    blank = np.ones(len(columns[0]), bool)
    for column in columns:
        if not blank.any():
            break
        blank &= ~_is_filled(column)
    others = [k for k in range(len(cells.titles)) if k not in places]
    if blank.any() and others:
        blank &= ~np.any([_is_filled(column) for column in cells.take(others)], axis=0)
    return ~blank


def _is_filled(column: Any) -> Flags:
    if types.is_string(column.type):
        return to_flags(pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return to_flags(column.is_valid())


def _unfilled(text: Any) -> int:
    """Return the number of cells without a value."""
    try:
        return int(drop_missing(to_text(text)).null_count)
    except CellError:
        return 0
