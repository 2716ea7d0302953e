"""Text files as columns: delimited text, and JSON lines with an object a line."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import IO, Any, Literal

import pyarrow
import pyarrow.csv
import pyarrow.json

from client.data.tables.files import LINE_LIMIT, Content, suffix_of
from client.data.tables.schema import DEFAULT_DIALECT, Cells, Dialect, TableSchema, find_names, normalize_title, quoted
from common.errors import DataError
from common.text import count, one_name

DELIMITERS = ("\t", ";", ",", "|", "^", "~", "\x01")
TWO_COLONS, UNIT_SEPARATOR = "::", "\x1f"
"""MovieLens' delimiter, and the character that stands in for it."""

ATOMIC = re.compile(r"(?P<title>.+?) *: *(?P<type>token|token_seq|float|float_seq)", re.IGNORECASE)
"""Title in an atomic file of RecBole, with its type."""
FIGURE = re.compile(r"[+-]?[.,]?\d\S*")
"""Begin of a number or a time."""
csv.field_size_limit(LINE_LIMIT)


@dataclass(frozen=True, eq=False)
class Delimited(Cells):
    """Delimited text.

    Args:
        body: Bytes before the first row.
        dialect: Columns and forms that the owner names.
        numbers: Places of columns of numbers.
    """

    body: int = 0
    dialect: Dialect = DEFAULT_DIALECT
    numbers: frozenset[int] = frozenset()

    unit: Literal["line", "row"] = field(default="line", kw_only=True)

    @classmethod
    def of(cls, content: Content, schema: TableSchema, dialect: Dialect) -> "Delimited":
        """Find the header, and the delimiter that separates the most titles of the schema."""
        first, header = next(content.lines())[0], _header(content, schema, dialect)
        if first < header and dialect.account:
            span = f"lines {first} to {header - 1}" if header - first > 1 else f"line {first}"
            dialect.account.notes.append(f"{span}, above the header, not read")
        content = content.below(header - 1)
        if b'="' in content.data:  # text, as spreadsheets write it
            content = replace(content, data=re.sub(rb'(?m)(^|[,;\t])=("[^"\n]*")(?=[,;\t]|$)', rb"\1\2", content.data))
        content, delimiter = _separated(content, schema, dialect)
        if delimiter != "\t" and re.search(rb'\\"[^,;|\n"]', content.data):  # not a backslash at the end of a cell
            content = replace(content, data=content.data.replace(b'\\"', b'""'))
        content, footers = _without_footers(content, delimiter, schema)
        file = io.BytesIO(content.data)
        try:
            line, cells = next((record for record in _records(file, delimiter) if any(record[1])), (1, []))
        except csv.Error:  # an open quote, about which the rows will say more
            line, text = next(content.lines())
            file.seek(content.data.index(text.encode()) + len(text.encode()))
            cells = _split(text, delimiter)
        titles = [(one_name(cell).lstrip("# ") if not k else one_name(cell)) for k, cell in enumerate(cells)]
        titles, lists = _without_types(titles)
        numbered = [f"column{k}" for k, _ in enumerate(titles, start=1)]
        if {*numbered} & {part for title in dialect.columns.values() for part in title.split("+")} - {*titles}:
            return cls(content, numbered, dialect=dialect, delimiter=delimiter, footers=footers)
        if _is_headerless(titles, schema, dialect):
            return cls(content, schema.positions[: len(titles)], delimiter=delimiter, footers=footers)
        body, rows = file.tell(), [(cells, file.tell()) for _, cells in islice(_records(file, delimiter), BELOW)]
        titles = _as_wide_as_rows(titles, [cells for cells, _ in rows])
        units = list(takewhile(lambda row: not any(map(FIGURE.match, row[0])), rows))
        if schema.rest == "numbers" and 0 < len(units) < len(rows):
            body = units[-1][1]
            dialect.notes.append(f"{count(len(units), 'line')} below the titles ('{units[0][0][-1]:.40}', …) not read")
        kinds = {column.name: column.kind for column in schema.columns}
        named = [(k, find_names([title], schema, dialect)) for k, title in enumerate(titles) if title]
        rest = {"number"} if schema.rest == "numbers" else set[str]()
        numbers = frozenset(k for k, names in named if ({kinds[name] for name in names} or rest) == {"number"})
        of_rows: dict[str, Any] = {"delimiter": delimiter, "footers": footers}
        return cls(content, titles, body, dialect, numbers, header_line=line, lists=lists, **of_rows)

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places as text.

        Raises:
            DataError: A row has more cells than the header, or more than one row in 50 has fewer.
        """
        body = pyarrow.py_buffer(self.content.data)[self.body :]
        if not len(body):
            return [pyarrow.array([], pyarrow.string())] * len(places)
        table, ragged = self._parsed(body, places)
        if ragged and (even := self._evened(ragged, table.num_rows + len(ragged))):
            table, left = self._parsed(even, places)
            ragged = left and ragged
        if ragged:
            raise self._error(ragged, table.num_rows)
        return [column.combine_chunks() for column in table.columns]

    def _parsed(self, body: Any, places: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return the columns at these places as a table of Arrow, and the rows that have more or fewer cells."""
        names, ragged = [str(k) for k in range(len(self.titles))], list[Any]()

        def skip(row: Any) -> str:
            if row.actual_columns > 1 or row.text.strip():
                ragged.append(row)
            return "skip"

        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=min(len(body), 2**30), column_names=names)
        parse = pyarrow.csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char=False if self.delimiter == "\t" else '"',
            newlines_in_values=b'"' in self.content.data,
            invalid_row_handler=skip,
        )
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()), include_columns=[names[k] for k in places]
        )
        try:
            table = pyarrow.csv.read_csv(pyarrow.BufferReader(body), read, parse, convert)
        except pyarrow.ArrowException as error:
            message = f"cannot be read as delimited text ({type(error).__name__}); save it again as CSV"
            raise DataError(message, self.content.path) from None
        return table, ragged

    def _evened(self, ragged: Sequence[Any], rows: int) -> Any:
        """Return the rows with a cell for each title, where it is sure which cells are meant; else nothing."""
        is_rare = SHORT * sum(row.actual_columns < row.expected_columns for row in ragged) <= rows
        even, how = dict[bytes, bytes](), Counter[str]()
        for text, number in Counter(row.text for row in ragged).items():
            cells, note = self._fitted(text, is_rare=is_rare)
            if not cells or (text.count('"') % 2 and self.delimiter != "\t"):
                return None
            row = io.StringIO()
            quoting: Any = {"quoting": csv.QUOTE_NONE, "quotechar": None} if self.delimiter == "\t" else {}
            csv.writer(row, delimiter=self.delimiter, lineterminator="", **quoting).writerow(cells)
            even[text.encode()] = row.getvalue().encode()
            how[note] += number
        lines = self.content.data[self.body :].split(b"\n")
        if sum(line in even for line in lines) != len(ragged):
            return None
        self.dialect.notes.extend(f"{count(number, 'row')} {note}" for note, number in how.items())
        return pyarrow.py_buffer(b"\n".join(even.get(line, line) for line in lines))

    def _fitted(self, text: str, *, is_rare: bool) -> tuple[list[str], str]:
        """Return a cell for each title, and the note on it; nothing if it is unsure which cells are meant."""
        cells = _split(text, self.delimiter)
        width, filled = len(self.titles), sum(bool(cell.strip()) for cell in cells)
        more = len(cells) - width
        if more > 0 and not any(cell.strip() for cell in cells[width:]):
            return cells[:width], "with empty cells behind the last title, not read"
        if is_rare and filled > 1 and 0 < -2 * more < width:
            return [*cells, *[""] * -more], "without the last cells, read as empty ones"
        if self.dialect.decimal == "comma" and (joined := self._with_decimals(cells)):
            return joined, "with decimal commas between cells, joined (--decimal comma)"
        joined = [cell.replace(UNIT_SEPARATOR, ", ") for cell in _split(text.replace(", ", UNIT_SEPARATOR), ",")]
        if more > 0 and self.delimiter == "," and len(joined) == width:
            return joined, "with commas within a text, read as one cell where a blank follows the comma"
        if self.dialect.drop_empty:
            return [""] * width, "whose cells do not fit the titles, read as empty ones (--drop-empty)"
        return [], ""

    def _with_decimals(self, cells: list[str]) -> list[str]:
        """Return cells of which each number is joined from two, before and after a comma; else nothing."""
        if self.delimiter != "," or len(cells) != len(self.titles) + len(self.numbers):
            return []
        rest = iter(cells)
        joined = [f"{next(rest)},{next(rest)}" if k in self.numbers else next(rest) for k in range(len(self.titles))]
        return joined if all(re.fullmatch(r"\s*[+-]?\d+,\d+\s*", joined[k]) for k in self.numbers) else []

    def place_of(self, row: int) -> int:
        """Return the one-based line of a row counted from 0; lines of blanks alone are no rows."""
        return self._line(row, blanks=len(self.titles) == 1)

    def _line(self, number: int, *, blanks: bool) -> int:
        file = io.BytesIO(self.content.data)
        before = self.content.data.count(b"\n", 0, file.seek(self.body))
        lines = (line for line, cells in _records(file, self.delimiter) if blanks or len(cells) > 1 or cells[0].strip())
        try:
            below = self.content.data.count(b"\n") + 1 - before  # a footer, which is no row
            return next(islice(lines, number, None), below) + before
        except csv.Error:
            return 0

    def _error(self, ragged: Sequence[Any], rows: int) -> DataError:
        first = ragged[0]
        what = f"{first.actual_columns} cells, but the first line has {first.expected_columns}"
        if first.text.count('"') % 2 and self.delimiter != "\t":
            what, remedy = "a quote opens and is not closed", "close it, or double the quotes within cells"
        elif all(self._with_decimals(_split(row.text, self.delimiter)) for row in ragged):
            remedy = "say --decimal comma if numbers have decimal commas"
        elif rows:
            remedy = f"correct the rows, or say --drop-empty {quoted(next(filter(None, self.titles)))}"
        else:
            remedy = "correct the rows"
        message = f"{what} ({len(ragged):,} of {count(rows + len(ragged), 'row')}); {remedy}"
        return DataError(message, self.content.path, self._line(first.number - 1, blanks=True))


SHORT = 50
"""Rows among which one may lack its last cells; where more do, the header or the delimiter is wrong."""
ABOVE, BELOW = 20, 3
"""Lines among which a header is looked for, and a footer."""
FOOTER = re.compile(
    r"(?i)[\"#*( ]*(((grand )?total|sum|summe|gesamt)s?\b|(total |number of )?(rows|records)\b|\d+ (rows|records)\b|"
    r"(end of|exported|generated)\b|-{3,}|={3,})"
)
"""Begin of a line below the rows."""


def _header(content: Content, schema: TableSchema, dialect: Dialect) -> int:
    """Return the line of the titles: the first that has those which a table needs, else the first at all."""
    first = 0
    for line, text in islice(content.lines(), ABOVE):
        first = first or line
        marks = [mark for mark in DELIMITERS if mark in text] or [" "]
        for cells in ([one_name(cell).lstrip("# ") for cell in _split(text, mark)] for mark in marks):
            names = find_names(_without_types(cells)[0], schema, dialect)
            if any(names.issuperset(needed) for needed in schema.alternatives if needed):
                return line
            if line == first and _is_headerless(cells, schema, dialect):
                return first
    is_comment = suffix_of(content.path) in (".csv", ".tsv") and re.match(r"#[^\t;,|]*$", content.first_line())
    return next((line for line, text in islice(content.lines(), ABOVE) if not is_comment or text[0] != "#"), first)


def _without_footers(content: Content, delimiter: str, schema: TableSchema) -> tuple[Content, int]:
    """Return the content without a footer such as `Total rows: 12`, and the number of its lines.

    It has fewer cells than the lines above, empty ones, or words where a table has times.
    """
    times = {
        normalize_title(text)
        for column in schema.columns
        if column.kind == "time"
        for text in (column.name, *column.aliases)
    }
    data, footers = content.data.rstrip(), 0
    while footers < BELOW and (start := data.rfind(b"\n") + 1):
        cells = _split(data[start:].decode(), delimiter)
        widths = {len(_split(text, delimiter)) for _, text in islice(content.lines(), 2)}
        is_timed = normalize_title(_split(content.first_line(), delimiter)[0]) in times
        is_odd = len(cells) < max(widths) or not all(cell.strip() for cell in cells) or is_timed
        if not (cells and is_odd and max(widths) > 1 and FOOTER.match(cells[0])):
            break
        data, footers = data[:start].rstrip(), footers + 1
    return (replace(content, data=data + b"\n"), footers) if footers else (content, 0)


def _as_wide_as_rows(titles: list[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return titles for a separator after the last cell of each row, or for R's row names before it."""
    more = {len(row) - len(titles) for row in rows}
    if more == {1} and len(rows) > 1:
        is_numbered = [row[0] for row in rows] == [str(k) for k in range(1, len(rows) + 1)]
        return [*titles, ""] if not any(row[-1].strip() for row in rows) else ["", *titles] if is_numbered else titles
    return titles[:-1] if more == {-1} and len(titles) > 1 and not titles[-1] else titles


def _records(file: io.BytesIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record after the file's position, and the record's first line, from 1."""
    quote = None if delimiter == "\t" else '"'
    reader = csv.reader((line.decode() for line in iter(file.readline, b"")), delimiter=delimiter, quotechar=quote)
    before = 0
    for cells in reader:
        if cells:
            yield before + 1, cells
        before = reader.line_num


def _separated(content: Content, schema: TableSchema, dialect: Dialect) -> tuple[Content, str]:
    """Return the delimiter, one character, and the text in which it stands between cells.

    Blanks separate cells in published sets alone, whose names promise neither commas nor tabs.
    """
    line = content.first_line()
    marks = [mark for mark in DELIMITERS if mark in line]
    if marks:
        return content, max(marks, key=lambda mark: len(find_names(_split(line, mark), schema, dialect)))
    if TWO_COLONS in line and suffix_of(content.path) != ".tsv":
        return replace(content, data=content.data.replace(TWO_COLONS.encode(), UNIT_SEPARATOR.encode())), UNIT_SEPARATOR
    if suffix_of(content.path) in (".csv", ".tsv"):
        return content, ","
    return replace(content, data=re.sub(rb"(?m)^ +| +$|(?<= ) +", b"", content.data)), " "


def _split(line: str, delimiter: str) -> list[str]:
    return next((cells for _, cells in _records(io.BytesIO(line.encode()), delimiter)), [])


def _without_types(titles: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the titles of an atomic file without their types, and the types of lists; others unchanged."""
    typed = [ATOMIC.fullmatch(title) for title in titles]
    if not all(typed):
        return titles, {}
    pairs = [(found["title"], found["type"].lower()) for found in typed if found]
    return [title for title, _ in pairs], {title: kind for title, kind in pairs if kind.endswith("_seq")}


def _is_headerless(cells: Sequence[str], schema: TableSchema, dialect: Dialect) -> bool:
    """Return True if the cells can be a row: by their number, and by those of numbers and times."""
    columns = {column.name: column for column in schema.columns}
    named = [(columns[name], cell) for name, cell in zip(schema.positions, cells, strict=False) if name in columns]
    figures = [cell for column, cell in named if column.kind != "text"]
    needed = [k for k, name in enumerate(schema.positions, start=1) if name in columns and columns[name].required]
    fits = max(needed, default=1) <= len(cells) <= len(schema.positions) and not find_names(cells, schema, dialect)
    return fits and not dialect.wide and bool(figures) and all(map(FIGURE.match, figures))


SUFFIXES = (".jsonl", ".ndjson")
SAMPLE = 1_000
"""Objects whose keys are the titles, and whose values tell the types."""

TYPES = {
    frozenset(): pyarrow.string(),
    frozenset({str}): pyarrow.string(),
    frozenset({int}): pyarrow.int64(),
    frozenset({float}): pyarrow.float64(),
    frozenset({int, float}): pyarrow.float64(),
}


@dataclass(frozen=True, eq=False)
class JsonLines(Cells):
    """JSON lines.

    Args:
        types: Title -> Arrow type of its values; None if they are of several kinds.
    """

    types: dict[str, Any]

    @classmethod
    def of(cls, content: Content) -> "JsonLines":
        """Read the keys of the first objects.

        Raises:
            DataError: One of these lines is no object.
        """
        kinds: dict[str, set[type]] = {}
        for _, record in islice(_json_records(content), SAMPLE):
            for title, value in record.items():
                kinds.setdefault(title, set()).update({type(value)} - {type(None)})
        return cls(content, list(kinds), {title: TYPES.get(frozenset(found)) for title, found in kinds.items()})

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: A line is no object, or a value is an object or a list of such.
        """
        names = [self.titles[k] for k in places]
        return self._of_one_type(names) or self._of_several(names)

    def place_of(self, row: int) -> int:
        """Return the one-based line of a row counted from 0."""
        return next(islice(self.content.lines(), row, None))[0]

    def _of_one_type(self, names: Sequence[str]) -> list[Any]:
        """Return the columns, or nothing if not each line is an object with values of the expected types."""
        if any(self.types[name] is None for name in names):
            return []
        data = self.content.data
        read = pyarrow.json.ReadOptions(use_threads=False, block_size=min(len(data), 2**30))
        schema = pyarrow.schema([(name, self.types[name]) for name in names])
        parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        try:
            table = pyarrow.json.read_json(pyarrow.BufferReader(data), read, parse)
        except pyarrow.ArrowException:
            return []
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        return [table.column(name).combine_chunks() for name in names] if table.num_rows == lines else []

    def _of_several(self, names: Sequence[str]) -> list[Any]:
        columns: dict[str, list[str | None]] = {name: [] for name in names}
        for line, record in _json_records(self.content):
            for name, column in columns.items():
                try:
                    column.append(_text(record.get(name)))
                except ValueError as error:
                    raise DataError(str(error), self.content.path, line, name, unit="row") from None
        return [pyarrow.array(column, pyarrow.string()) for column in columns.values()]


def unpack(file: IO[bytes]) -> Any:
    """Open a file that Zstandard packed."""
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file), "zstd")


def as_lines(content: Content) -> Content:
    """Return one JSON value, objects in objects, or a server's log as JSON lines, one object a line.

    Other content is unchanged.

    Raises:
        DataError: Netflix's lines name items and no rater, or InfluxDB's name no row.
    """
    if content.data.startswith((b"#group,", b"#datatype,")):  # of InfluxDB, which repeats titles for each table
        data = re.sub(rb"(?m)^#(group|datatype|default)\b.*$", b"", content.data)
        if not (titles := re.search(rb"\S.*", data)):
            raise DataError("has annotations and no rows", content.path)
        content = replace(content, data=data[: titles.end()] + data[titles.end() :].replace(titles[0], b""))
    first, *more = (text for _, text in islice(content.lines(), 2))
    one = _object(first)
    if NETFLIX.fullmatch(first):
        data = "\n".join(_with_items(content.data.decode())).encode()
        if not data.strip():
            raise DataError("has lines of items and no rater", content.path)
        return replace(content, data=data)
    if LOGGED.match(first):
        records = [found.groupdict() if (found := LOGGED.match(text)) else {} for _, text in content.lines()]
    elif one and more:
        is_nested = any(isinstance(value, dict) or _is_list(value) for value in one.values())
        records = [record for _, record in _json_records(content)] if is_nested else []
    else:
        try:
            records = _records_in(json.loads(content.data)) if first.lstrip().startswith(("[", "{")) else []
        except (ValueError, RecursionError):
            records = []
    if len(names := {name for one in records for name, value in one.items() if _is_list(value)}) == 1:  # a row for each
        records = [{**one, name: inner} for name in names for one in records for inner in one.get(name) or [{}]]
    return replace(content, data="\n".join(json.dumps(_flat(one)) for one in records).encode()) if records else content


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and isinstance((*value, None)[0], dict)


LOGGED = re.compile(
    r'(?P<user>\S+) \S+ \S+ \[(?P<timestamp>[^\]]+)\] "(?P<method>[A-Z]+) (?P<item>\S+)[^"]*" (?P<status>\d{3})\b'
)
"""Line of Apache's or nginx's log of requests: the address is the user, the path the item."""


NETFLIX = re.compile(r"\d+:")
"""Line of Netflix's ratings with an item, whose raters follow: `user,rating,date`."""


def _with_items(text: str) -> Iterator[str]:
    """Yield lines `user,item,rating,date`, and blank ones for the lines of items."""
    item = ""
    for line in text.split("\n"):
        is_item, (user, _, rest) = NETFLIX.fullmatch(line.strip()), line.partition(",")
        item = line.strip()[:-1] if is_item else item
        yield "" if is_item or not line.strip() else f"{user},{item},{rest}"


def _records_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, of the only list in an object, of columns, or of lists below titles."""
    if isinstance(value, dict) and isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        value = [value["columns"], *value["data"]]
    if isinstance(value, dict) and all(isinstance(of, dict) for of in value.values()):
        rows = dict.fromkeys(row for of in value.values() for row in of)
        if not all(row.isdecimal() for row in rows):
            return [{"": title, **of} for title, of in value.items()]
        return [{title: of.get(row) for title, of in value.items()} for row in rows]
    lists = [of for of in value.values() if isinstance(of, list)] if isinstance(value, dict) else [value]
    records = lists[0] if len(lists) == 1 else []
    if len(records) > 1 and all(isinstance(record, list) for record in records):
        return [dict(zip(map(str, records[0]), record, strict=False)) for record in records[1:]]
    return records if all(isinstance(record, dict) for record in records) else []


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the values of its objects, under their own name or, where that is vague, both."""
    for name, value in record.items():  # MongoDB and DynamoDB name types
        while isinstance(value, dict) and len(value) == 1 and re.fullmatch(r"\$\w+|[SN]", key := next(iter(value))):
            record[name] = value = value[key]
    flat = {name: value for name, value in record.items() if not isinstance(value, dict)}
    for name, inner in record.items():
        for key, cell in _flat(inner).items() if isinstance(inner, dict) else ():
            flat[f"{name}.{key}" if key in flat or key in ("id", "name", "value") else key] = cell
    return flat


def is_object(line: str) -> bool:
    """Return True if a line is a JSON object."""
    return line.startswith("{") and _object(line) is not None


def _json_records(content: Content) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in content.lines():
        record = _object(text)
        if record is None:
            remedy = 'write {"name": value, …} on a line of its own'
            raise DataError(f"not a JSON object; {remedy}", content.path, line, unit="row")
        yield line, record


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    """Return a value as a delimited file would show it.

    Raises:
        ValueError: It is an object, holds one, or is no text that can be written.
    """
    match value:
        case None | str():
            text = value
        case bool():
            text = str(value).lower()
        case float():
            text = str(int(value)) if value.is_integer() else repr(value)
        case int():
            text = str(value)
        case list():
            texts = [_text(part) or "" for part in value]
            if any("," in part for part in texts):
                raise ValueError("a list of texts with commas; write one row for each of them")
            text = ",".join(texts)
        case _:
            raise ValueError("an object; write its values as columns of their own")
    if text is not None and not text.isascii():
        text.encode()
    return text
