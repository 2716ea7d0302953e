"""Table of typed columns, and cells of a column as text, numbers, times and codes, by Arrow."""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from client.data.tables.schema import (
    ABOVE,
    CELL_LENGTH,
    LEAVE_OUT,
    CellError,
    Cells,
    Codes,
    Decimal,
    Dialect,
    escape,
    quoted,
)
from common.arrays import Flags, Floats, Ints
from common.errors import DataError
from common.text import ZERO_WIDTH, one_name

MISSING: tuple[str, ...] = ("", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "#n/a", "#value!")
MISSING += ("unavailable", "unknown")
"""Cells without a value among numbers and times, in lower case."""

UUID_BYTES, PLURAL = 16, 4
"""Bytes, and letters of a unit from which on it may end in s or not."""

LONG = 10_000
"""Number of cells from which on equal texts are converted once."""

LISTS, MARKS = "items", ("|", ";", "->", "→", " > ")
"""Column of cells that list several items, and marks between these, besides commas and blanks."""
MARK = "|".join(map(re.escape, MARKS))
PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
GROUPED = r"^[+-]?((\d+|\d{1,3}(MARK\d{3})+|\d{1,3}([ \x{a0}\x{202f}'’]\d{3})+)(POINT\d*)?|POINT\d+)([eE][+-]?\d+)?$"
"""Numbers with thousands separators: MARK, a blank or an apostrophe."""
FORMS = {
    "point": GROUPED.replace("MARK", ",").replace("POINT", r"\."),
    "comma": GROUPED.replace("MARK", r"\.").replace("POINT", ","),
}
UNIT = re.compile(
    r"[+-]?[\d.,' \u00a0\u202f]*\d[.,]?\s*(?P<unit>/ ?\d+|(?i:(?![ex][+-]?\d)(out of \d+|[^\W\d_])|[°%★⭐]).{,20})"
)
"""Number with a unit such as `req/s`, `°C`, `/5` or `out of 5 stars`."""
UNITED = r"^(?P<number>[+-]?[\d.,' \x{a0}\x{202f}]*\d[.,]?)\s*(?P<unit>|/ ?\d+|(?:out of \d+|[\p{L}°%★⭐]).{0,20})$"
MOST_UNITS = 8
EXPONENT = re.compile(r"[eExX][+-]?\d")
PREFIXES = {"": 1.0, "m": 1e-3, "c": 1e-2, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
PREFIXES |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
SCALED = re.compile(r"(?P<prefix>[KMGT]i|[mckKMGT]?)(?P<base>B|B/s|W|Wh|VA|VAh|V|A|Hz|J|bit|bit/s|bps|g|m|l|L)")
"""Prefix of a unit -> factor, and units that may differ by a prefix."""
STARS, FULL_STAR = r"^([★⭐♥❤\x{FE0F}]*½?[☆✩♡]*|\*+)$", "[★⭐♥❤*]"
"""Ratings as stars, of which the full ones count."""
INFINITE = r"(?i)^[+-]?inf(inity)?$"
NUMBER, RECURS = r"^\W*\d+([.,]\d+)?( ?\D*|/\d+)$|[★⭐]", 3
"""Cell that holds a number, and equal or far numbers of a column that are asked about."""
FIGURE = re.compile(r"'?(?P<below>\()?(?P<figure>\d+(\.\d+)?)(?P<minus>-$)?(\)|\s?[-–|]\s?\d+(\.\d+)?|[\s:(–-]+\D+)?")
"""Number as spreadsheets write it in text or below zero, with a label, or a range."""
SCALE = re.compile(
    r"(?i)((?:strongly|very) (?:dis|un|bad|poor|low)|terrible|worst|never)|(dis|un|bad|poor|low|no?\b|off$|down|false|👎)|"
    r"(neutral|neither|medium|moderate|ok|average|fair|some)|(?!(?:strongly|very)\b|excellent|great|best|always)(.)"
)
"""Begins of words from bad to good."""


def to_text(column: Any) -> Any:
    """Return a column as text without blanks around it, null where nothing is left.

    Floats that are all whole become whole numbers, as they were before a missing value made floats of them.

    Raises:
        CellError: The cells are records, lists of such, or bytes.
    """
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        whole = try_cast(column, pyarrow.int64())
        column = column if whole is None else whole
    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    if types.is_fixed_size_binary(column.type) and column.type.byte_width == UUID_BYTES:
        column = pyarrow.array(
            [None if one is None else str(UUID(bytes=one)) for one in column.to_pylist()], pyarrow.string()
        )
    try:
        if types.is_list(column.type) or types.is_large_list(column.type):
            column = _joined(column)
        text = pc.utf8_trim_whitespace(column.cast(pyarrow.string()))
    except (pyarrow.ArrowException, TypeError):
        remedy = "write text, numbers or times, one a cell"
        raise CellError(np.ones(len(column), bool), f"is of type {column.type}", remedy) from None
    if not pc.all(pc.string_is_ascii(text)).as_py():
        hidden = pc.replace_substring_regex(pc.utf8_normalize(text, "NFC"), ZERO_WIDTH.pattern, "")
        text = pc.utf8_trim_whitespace(hidden)
    blank = pc.equal(text, "")
    return pc.if_else(blank, None, text) if pc.any(blank).as_py() else text


def to_numbers(column: Any, decimal: Decimal, comma_separated: bool, missing: Sequence[str] = ()) -> Any:
    """Return a column as floats, null where a value is missing.

    Args:
        column: Text or numbers.
        decimal: Decimal mark; `auto` takes a comma for it where no cell can be read otherwise.
        comma_separated: True if commas stand between cells.
        missing: Further texts that stand for a missing value.

    Raises:
        CellError: Cells are no finite numbers, or their decimal mark is not settled.
    """
    if types.is_integer(column.type) or types.is_float64(column.type):
        numbers = column.cast(pyarrow.float64(), safe=False)
        none = pc.invert(pc.is_finite(numbers)) if "inf" in missing else pc.is_nan(numbers)
        return without(_finite(pc.if_else(none, None, numbers), column), missing)
    plain = try_cast(column, pyarrow.float64()) if decimal != "comma" and types.is_string(column.type) else None
    if plain is not None and pc.all(pc.is_finite(plain)).as_py() is not False:
        return without(plain, missing)
    text = pc.replace_substring_regex(drop_missing(to_text(column), missing), r"^(\d+)½", r"\1.5")
    plain = try_cast(text, pyarrow.float64()) if decimal != "comma" else None
    if plain is None and pc.all(match_cells(text, STARS)).as_py() and pc.any(match_cells(text, FULL_STAR)).as_py():
        halves = pc.divide(pc.count_substring(text, "½").cast(pyarrow.float64()), 2)
        return pc.add(halves, pc.count_substring_regex(text, FULL_STAR).cast(pyarrow.float64()))
    if plain is None or pc.any(pc.is_nan(plain)).as_py():
        text, factors = _without_prefixes(text)
        plain = pc.multiply(try_cast(_plain_text(text, decimal, comma_separated), pyarrow.float64()), factors)
    return without(_finite(plain, text), missing)


def _without_prefixes(text: Any) -> tuple[Any, Any]:
    """Return numbers whose units differ by a prefix, such as kB and MB, and their factors to the unit.

    Other text is unchanged. A zero needs no unit.

    Raises:
        CellError: Each number has a unit, and units differ otherwise.
    """
    split = pc.extract_regex(text, UNITED)
    numbers, units = pc.struct_field(split, "number"), pc.struct_field(split, "unit")
    counts = {one["values"]: one["counts"] for one in units.value_counts().to_pylist() if one["values"] is not None}
    several = 1 < len({unit.removesuffix("s") for unit in counts} - {""}) <= MOST_UNITS
    if not several or units.null_count > text.null_count or any(map(EXPONENT.match, counts)):
        return text, 1.0
    found = {unit: SCALED.fullmatch(unit) for unit in counts if unit}
    scales = {unit: PREFIXES[match["prefix"]] for unit, match in found.items() if match}
    bare = numbers.filter(pc.equal(units, ""))
    is_one = len(scales) == len(found) and len({match["base"] for match in found.values() if match}) == 1
    if is_one and pc.all(match_cells(bare, "^[0.,]+$")).as_py() is not False:
        return numbers, pyarrow.array([scales.get(unit or "", 1.0) for unit in units.to_pylist()])
    if not bare:
        usual = max(counts, key=lambda unit: counts[unit])
        wrong = to_flags(pc.not_equal(units, usual))
        other = units[int(wrong.argmax())].as_py()
        raise CellError(wrong, f"has the unit {other}, while most have {usual}", f"write numbers in {usual}")
    return text, 1.0


def may_be_thousands(text: Any) -> Flags:
    """Return the cells such as 1.000 and 1,000 of a column without other points and commas."""
    marked = to_flags(match_cells(text, "[.,]"))
    fits = to_flags(match_cells(text, r"^[^\d.,]*[1-9]\d{0,2}[.,]\d{3}([^\d.,].*)?$"))
    return marked & bool((marked == fits).all())


def without(numbers: Any, missing: Sequence[str]) -> Any:
    """Return numbers with null for those that stand for a missing value."""
    values = [number for text in missing if (number := try_float(text)) is not None]
    return pc.if_else(pc.is_in(numbers, value_set=pyarrow.array(values)), None, numbers) if values else numbers


def try_float(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def numbers_of(words: Sequence[str], *, is_all: bool) -> dict[str, str]:
    """Return numbers for words: their figures or, of all cells, places from bad to good; else none."""
    if all(figures := [FIGURE.fullmatch(word) for word in words]):
        return {one[0]: "-" * bool(one["below"] or one["minus"]) + one["figure"] for one in figures if one}
    if not is_all or re.search(r"\d", "".join(words)):
        return {}
    ranks = {word: (found.lastindex or 0) if (found := SCALE.match(word)) else 5 for word in words}
    if all(re.fullmatch("[A-Fa-f][+-]?", word) for word in words):  # school marks: C, B-, B, B+, A
        ranks = {word: k for k, word in enumerate(sorted(words, key="{},".format, reverse=True))}
    if len({*ranks.values()}) < len(words):
        return dict.fromkeys(words, "NUMBER")
    return {word: str(k + (len(words) != 2)) for k, word in enumerate(sorted(words, key=ranks.__getitem__))}


def convert_distinct(text: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert each distinct text of a long column once if there are few; otherwise every cell.

    Raises:
        CellError: Cells are refused by `convert`.
    """
    sample = text.slice(0, LONG // 10)
    if not types.is_string(text.type) or len(text) < LONG or pc.count_distinct(sample).as_py() > len(sample) // 2:
        return convert(text)
    coded = text.dictionary_encode()
    try:
        return convert(coded.dictionary).take(coded.indices)
    except CellError as error:
        wrong = np.append(error.wrong, False)[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        raise CellError(wrong, error.problem, error.remedy) from None


def drop_missing(text: Any, further: Sequence[str] = ()) -> Any:
    """Return text with null for a missing value, and with the number of each `WORD=NUMBER`."""
    for word, _, figure in (value.rpartition("=") for value in further if "=" in value):
        is_word = pc.fill_null(pc.equal(pc.utf8_lower(text), one_name(word).lower()), False)
        text = text if (number := try_float(figure)) is None else pc.if_else(is_word, str(number), text)
    values = pyarrow.array([*MISSING, *(value.lower() for value in further)])
    missing = pc.is_in(pc.utf8_lower(text), value_set=values)
    return pc.if_else(missing, None, text)


def join_names(columns: Sequence[Any]) -> Any:
    """Return names of their parts, without missing ones; Arrow would leave out the rows without any."""
    last = pc.if_else(pc.coalesce(*columns).is_valid(), columns[-1], "")
    return pc.binary_join_element_wise(*columns[:-1], last, ", ", null_handling="skip")


def try_cast(text: Any, kind: Any) -> Any:
    """Return a column in another type; None if a cell does not allow it."""
    try:
        return text.cast(kind)
    except pyarrow.ArrowInvalid:
        return None


def to_flags(condition: Any) -> Flags:
    """Return an Arrow condition as flags, false where it is null."""
    values: Flags = condition.fill_null(False).to_numpy(zero_copy_only=False)
    return values


def match_cells(text: Any, pattern: str) -> Any:
    """Return the cells that match a pattern, null where there is none."""
    return pc.match_substring_regex(text, pattern)


def to_codes(column: Any) -> tuple[Codes, list[str]]:
    """Return codes by first appearance, −1 for null, and the texts for which they stand."""
    coded = column.dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def _plain_text(text: Any, decimal: Decimal, comma_separated: bool) -> Any:
    """Return numbers with a decimal point, without thousands separators and a sign that all have.

    Raises:
        CellError: Cells are no numbers, or the decimal mark is not settled.
    """
    text = pc.replace_substring(text, "\N{MINUS SIGN}", "-")
    sign = sign_of(text.drop_null()[0].as_py()) if text.null_count < len(text) else ""
    is_plural = len(sign) >= PLURAL and sign[-PLURAL:].isalpha()  # 1 star, 2 stars
    pattern = rf"\Q{sign.removesuffix('s') if is_plural else sign}\E{'s?' if is_plural else ''}{'$'[: len(sign) > 1]}"
    if sign and pc.all(match_cells(text, pattern)).as_py():
        text = pc.utf8_trim_whitespace(pc.replace_substring_regex(text, pattern, "", max_replacements=1))
    fits = {mark: pc.sum(match_cells(text, form)).as_py() or 0 for mark, form in FORMS.items()}
    commas, filled = to_flags(pc.match_substring(text, ",")), len(text) - text.null_count
    mark = decimal if decimal != "auto" else max(fits, key=lambda form: fits[form])
    if decimal == "auto" and commas.any() and min(fits.values()) == filled:
        problem = "has a decimal comma or a thousands separator"
        raise CellError(commas, problem, "say --decimal comma or --decimal point")
    if fits[mark] < filled:
        raise _no_number(text, mark)
    if decimal == "auto" and mark == "comma" and comma_separated:
        raise CellError(commas, "has a decimal comma", "say --decimal comma")
    text = pc.replace_substring_regex(text, f"[{'.' if mark == 'comma' else ','} \u00a0\u202f'’]", "")
    return pc.replace_substring(text, ",", ".")


def _no_number(text: Any, mark: str) -> CellError:
    wrong = to_flags(pc.invert(match_cells(text, FORMS[mark])))
    first = text[int(wrong.argmax())].as_py()
    if pc.match_substring_regex(first, INFINITE).as_py():
        return CellError(wrong, "is an infinite number", LEAVE_OUT)
    if sign := sign_of(first):
        what = "sign" if len(sign) == 1 else "unit"
        return CellError(wrong, f"has the {what} {sign}", f"write numbers without {sign}")
    return CellError(wrong, "is not a number", f"write digits such as 4.5, or {LEAVE_OUT}")


def sign_of(cell: str) -> str:
    """Return the sign of percent or of a currency in a cell, or the unit at its end; empty without one."""
    sign = next((c for c in cell if unicodedata.category(c) == "Sc"), "")
    return found["unit"].rstrip() if not sign and (found := UNIT.fullmatch(cell)) else sign


def _finite(numbers: Any, column: Any) -> Any:
    """Return numbers of which none is infinite."""
    endless = to_flags(pc.is_inf(numbers))
    if endless.any():
        named = match_cells(column.cast(pyarrow.string()), INFINITE)[int(endless.argmax())].as_py()
        raise CellError(endless, "is an infinite number" if named else "is too large a number", LEAVE_OUT)
    return numbers


def _joined(column: Any) -> Any:
    """Return lists as text with commas between their parts.

    Raises:
        TypeError: A part holds a comma itself.
    """
    values = column.flatten().cast(pyarrow.string())
    if pc.any(pc.match_substring(values, ",")).as_py():
        raise TypeError("ambiguous")
    return pc.binary_join(column.cast(pyarrow.list_(pyarrow.string())), ",")


def split_items(text: str) -> list[str]:
    """Return item ids separated by commas or blanks; those of a list in brackets without quotes."""
    if text[:1] == "[" and text[-1:] == "]":
        text = ",".join(name.strip(" '\"") for name in text[1:-1].split(","))
    return [name.strip() for name in text.split(",") if name.strip()] if "," in text else text.split()


def split_lists(cells: Sequence[str | None]) -> list[list[str]]:
    """Return the items of cells that each list some, by the mark that most with several words have."""
    marks = MARKS if any(cell and cell[0] == "[" for cell in cells) else (*MARKS, ",")
    several = [cell for cell in cells if cell and re.search(f"{MARK}|[, ]", cell)]
    mark = next((mark for mark in marks if several and 2 * sum(mark in cell for cell in several) >= len(several)), "")
    lists = [(cell or "").split(mark) if mark else split_items(cell or "") for cell in cells]
    return [[name for cell in names if (name := re.sub('^"(.*)"$', r"\1", cell.strip()))] for names in lists]


@dataclass(frozen=True, eq=False)
class Table:
    """R rows of typed columns.

    Args:
        cells: File.
        titles: Name of each column -> its title in the file; variables come last.
        texts: Name -> cells as in the file.
        columns: Name -> Arrow array: text, floats, or times as seconds from 1970; null where blank or missing.
        variables: Names of the columns that the schema does not name.
        rows: R, the rows' places in the file, from 0.
        first: Number of the file's first row among those of all files of the source.
    """

    cells: Cells
    titles: Mapping[str, str]
    texts: Mapping[str, Any]
    columns: Mapping[str, Any]
    variables: tuple[str, ...]
    rows: Ints
    first: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @property
    def path(self) -> Path:
        """File of the table."""
        return self.cells.content.path

    @property
    def numbered(self) -> Ints:
        """R numbers of the rows among those of all files of the source."""
        return self.first + self.rows

    def filled(self, name: str) -> Flags:
        """Return R flags: the cells of a column that hold a value."""
        return np.asarray(self.columns[name].is_valid().to_numpy(zero_copy_only=False))

    def numbers(self, name: str) -> Floats:
        """Return R numbers or times, not-a-number where missing."""
        return np.asarray(self.columns[name].to_numpy(zero_copy_only=False), np.float64)

    def codes(self, name: str) -> tuple[Codes, list[str]]:
        """Return R codes by first appearance, −1 where blank, and the texts for which they stand."""
        return to_codes(self.columns[name])

    def where(self, chosen: Flags) -> "Table":
        """Return the rows for which a flag is true."""
        if chosen.all():
            return self
        mask = pyarrow.array(chosen)
        texts, columns = (
            {name: column.filter(mask) for name, column in of.items()} for of in (self.texts, self.columns)
        )
        return replace(self, texts=texts, columns=columns, rows=self.rows[chosen])

    def require(self, *names: str, remedy: str) -> None:
        """Accept columns without blank or missing cells.

        Raises:
            DataError: A cell holds no value.
        """
        for name in names:
            empty = ~self.filled(name)
            if empty.any():
                drop = f"{remedy}, or say --drop-empty {quoted(self.titles[name])}"
                is_repeated = types.is_string(self.columns[name].type) and 5 * empty.sum() > len(self)
                above = f", or --missing {ABOVE} if it repeats the cell above"
                raise self.error(name, empty, "", drop + above * bool(is_repeated and not empty[0]))

    def listed(self, name: str, group: str = "") -> "Table":
        """Return a row for each item of `items`, in the order of `group`, which becomes the row's number."""
        numbers = try_cast(self.columns[group], pyarrow.int64()) if group in self else None
        order = np.arange(len(self)) if numbers is None or numbers.null_count else np.argsort(numbers, kind="stable")
        lists = split_lists(self.columns[LISTS].take(pyarrow.array(order)).to_pylist())
        rows = np.repeat(order, [max(len(items), 1) for items in lists])
        items = {name: to_text(pyarrow.array([item for items in lists for item in items or [""]], pyarrow.string()))}
        items |= {group: pyarrow.array(map(str, rows.tolist()), pyarrow.string())} if group else {}
        of_rows = (
            {key: of[key].take(pyarrow.array(rows)) for key in of if key != LISTS} for of in (self.texts, self.columns)
        )
        texts, columns = (of | items for of in of_rows)
        titles = dict.fromkeys((name, group), self.titles[LISTS]) | dict(self.titles)
        return replace(self, titles=titles, texts=texts, columns=columns, rows=self.rows[rows])

    def error(self, name: str, wrong: Flags, problem: str, remedy: str) -> DataError:
        """Return the error about cells of a column, of which the first is named; see `CellError`."""
        return cell_error(self.cells, self.titles[name], self.texts[name], self.rows, CellError(wrong, problem, remedy))


@dataclass(frozen=True, eq=False)
class Unpivoted(Cells):
    """Cells of a table with a column for each item, sensor or hour, as one row for each of its cells.

    Args:
        columns: Columns of Arrow: those of the file that stay, titles, and cells that hold a value.
        source: Table of the file.
        rows: Row of the file of each row.
    """

    columns: Sequence[Any]
    source: Cells
    rows: Ints

    @classmethod
    def of(
        cls, source: Cells, stay: Sequence[int], named: Mapping[int, str], titles: Sequence[str], dialect: Dialect
    ) -> "Unpivoted":
        """Return the columns that stay beside the names of the others and their cells, under these titles."""
        columns = source.take([*stay, *named])
        for k, column in enumerate(columns):
            try:
                columns[k] = to_text(column)
            except CellError as error:
                raise cell_error(
                    source, source.titles[[*stay, *named][k]], column, np.arange(len(column)), error
                ) from None
        further = [text + end for text in dialect.missing for end in ("", ".0", ",0")]
        cells = drop_missing(pyarrow.concat_arrays(columns[len(stay) :]), further)
        filled, length = np.flatnonzero(to_flags(cells.is_valid())), len(columns[0])
        filled = filled[np.argsort(filled % length, kind="stable")]  # in the order of the file
        rows, places = pyarrow.array(filled % length), pyarrow.array(filled // length)
        long = [column.take(rows) for column in columns[: len(stay)]]
        long += [pyarrow.array([*named.values()]).take(places), cells.take(pyarrow.array(filled))]
        about: dict[str, Any] = {name: getattr(source, name) for name in ("header_line", "delimiter", "unit")}
        return cls(source.content, [*(source.titles[k] for k in stay), *titles], long, source, filled % length, **about)

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places."""
        return [self.columns[k] for k in places]

    def place_of(self, row: int) -> int:
        """Return the one-based place in the file of a row counted from 0."""
        return self.source.place_of(int(self.rows[row]))


def items_of(long: Unpivoted, dialect: Dialect) -> Any:
    """Return R flags: the cells of columns that hold a number; all if none does.

    Raises:
        DataError: The numbers of a column are far above all others, so that it may be no item.
    """
    titles, cells = long.columns[-2:]
    items = titles.filter(match_cells(cells, NUMBER)).unique()
    chosen = pc.is_in(titles, value_set=items if len(items) else titles)
    numbers = try_cast(pc.if_else(chosen, cells, None), pyarrow.float64())
    if numbers is not None and "none" not in dialect.missing:
        groups = pyarrow.table({"title": titles, "n": numbers}).group_by("title")
        ends = groups.aggregate([("n", "min"), ("n", "max"), ("n", "count")]).sort_by([("n_max", "descending")])
        top, other = (*ends.to_pylist(), {"n_max": None})[:2]
        if other["n_max"] is not None and top["n_min"] > 2 * max(1, other["n_max"]) and top["n_count"] >= RECURS:
            remedy = f"say --ignore {quoted(top['title'])} if it is no item, else --missing none"
            raise long.header_error(f"numbers are far above those of other columns; {remedy}", escape(top["title"]))
    left = titles.filter(pc.invert(chosen)).unique().to_pylist()
    dialect.notes.extend(f"column '{escape(title)}' holds no number and is not read" for title in left)
    return chosen


def cell_error(cells: Cells, title: str, texts: Any, rows: Ints, error: CellError) -> DataError:
    """Return the error of an owner's file: its place, the cell, how many are wrong, and the remedy."""
    try:
        text = texts.slice(error.row, 1).cast(pyarrow.string())[0].as_py() or ""
    except pyarrow.ArrowException:  # of a type without text, such as lists
        text = ""
    cell = escape(text.strip(), CELL_LENGTH)
    number = cells.place_of(int(rows[error.row]))
    path = cells.content.path
    return DataError(error.message(cell), path, number, escape(title), cell=cell, unit=cells.unit)


def locate(tables: Sequence[Table], row: int) -> str:
    """Return the place of a row of several tables, counted from 0 over all of them."""
    for table in tables:
        if row < len(table):
            number = f"{table.cells.unit} {table.cells.place_of(int(table.rows[row]))}"
            return f"{table.path}, {number}" if len(tables) > 1 else number
        row -= len(table)
    return ""
