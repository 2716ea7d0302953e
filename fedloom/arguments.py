"""Keyword arguments in the words of the command line, and data frames in place of files."""

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from common.errors import ConfigError, DataError, FedloomError
from common.options import Scalar
from common.text import hint
from deploy.cli.options import LOCAL, RunRequest, TrainingData
from deploy.files import write_file

Words = Mapping[str, Any]
"""Option of the command line, with underscores for hyphens -> its value."""

RENAMED = {"settings": "sets", "column": "columns", "set": "sets"}
"""Name of the command line, or of an earlier release -> name of the field."""

RequestT = TypeVar("RequestT")


@runtime_checkable
class Frame(Protocol):
    """Table of pandas, polars or Arrow, by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a stream of record batches."""


Data = str | Path | Frame
"""File or folder of data, `demo`, or a table in memory."""


@contextmanager
def stored(data: Data, *, trains: bool = False) -> Iterator[str]:
    """Yield the path of data; a table in memory is a private Parquet file inside the block.

    With `trains` the file stays in .fedloom/tables, named by its content: privacy ledgers, resumed runs and queries belong
    to it. An index of pandas that is not the row number becomes a column. Errors inside the block name arguments, not options.

    Raises:
        DataError: The table has types that Parquet cannot hold, or it is none.
    """
    if isinstance(data, str | Path):
        with in_python_words():
            yield str(data)
        return
    import pyarrow as pa
    from pyarrow import parquet

    with TemporaryDirectory(prefix="fedloom-") as folder:  # only this user may read it
        path = Path(folder) / "table.parquet"
        try:
            parquet.write_table(_as_arrow(data), path)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"the table cannot be read: {error}; rename or convert the column") from None
        content = path.read_bytes()
        stays = LOCAL.resolve() / "tables" / f"{hashlib.sha256(content).hexdigest()[:16]}.parquet"
        if trains and not stays.exists():
            write_file(stays, content, mode=0o600)
        found = str(stays if stays.exists() else path)  # a query finds the columns that the run has for this path
        with in_python_words(found):
            yield found


@contextmanager
def in_python_words(path: str = "") -> Iterator[None]:
    """Name arguments in place of options in errors of the block, and the DataFrame in place of its file."""
    try:
        yield
    except FedloomError as error:
        text = str(error).replace(path, THE_TABLE) if path else str(error)
        error.args = (_OPTIONS.sub(lambda found: found["command"] or _as_arguments(found[0]), text),)
        if isinstance(error, DataError) and error.path == path:
            error.path = THE_TABLE if path else ""
        raise


THE_TABLE = "the DataFrame"
PROSE = "and|or|if|is|are|as|of|to|by|for|from|with|without|in|on|out|too|the|does|needs|has|names|belongs?|contradicts|applies"
"""Words that follow the name of an option in a sentence, and are no value."""
_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s;,():"'\\]|:(?=\w))+"""
_OPTION = rf"--[a-z][a-z-]+(?: (?!-|(?:{PROSE})\b){_VALUE}| -[\d.]+)?"
_OPTIONS = re.compile(rf"(?P<command>fedloom [a-z-]+ [^;,]*)|{_OPTION}(?: {_OPTION})*")
_FLAGS = {field.name for kind in (RunRequest, TrainingData) for field in fields(kind) if field.default is False}


def _as_arguments(options: str) -> str:
    """Return options of the command line as arguments of Python; one without a value by its name."""
    found: dict[str, list[str]] = {}
    for option in re.findall(_OPTION, options):
        word, _, value = option[2:].partition(" ")
        name = {"set": "settings", "column": "columns"}.get(word, word.replace("-", "_"))
        found.setdefault(name, []).extend(shlex.split(value))
    return ", ".join(_as_argument(name, values) for name, values in found.items())


def _as_argument(name: str, values: Sequence[str]) -> str:
    if not values:
        is_negated = name.startswith("no_")
        return f"{name.removeprefix('no_')}={not is_negated}" if name in _FLAGS or is_negated else name
    value: Any = list(values) if name in REPEATED else values[0]
    if name in ("settings", "columns"):
        value = dict(one.partition("=")[::2] for one in values)
    return f"{name}={value if str(value).isdecimal() else json.dumps(value, ensure_ascii=False)}"


def _as_arrow(data: Any) -> Any:
    """Return a table of pandas, polars or Arrow with types that Parquet holds.

    Raises:
        DataError: It is none, or has periods, which Arrow has as numbers.
    """
    import pyarrow as pa

    if not isinstance(data, Frame):
        raise DataError(f"a {type(data).__name__} is no file, folder or data frame")
    if hasattr(data, "reset_index") and hasattr(data, "index"):  # pandas
        data = data.reset_index(drop=not any(data.index.names) and data.index.dtype.kind in "iu")
    table = pa.table(data.to_arrow() if hasattr(data, "to_arrow") else data)  # polars: with categories of plain text
    if found := [one.name for one in table.schema if getattr(one.type, "extension_name", "") == "pandas.period"]:
        raise DataError(f"column '{found[0]}' has periods; give their times, by to_timestamp()")
    return table


def pick(kind: Callable[..., RequestT], options: Words) -> tuple[RequestT, dict[str, Any]]:
    """Return the request with those of the options that it has, and the others."""
    named = {RENAMED.get(name, name): value for name, value in options.items()}
    names = {field.name for field in fields(cast("Any", kind))}
    given = {name: as_option(name, value) for name, value in named.items() if name in names}
    return kind(**given), {name: value for name, value in named.items() if name not in names}


REPEATED = {"track", "columns", "sets", "ignore", "drop_empty", "where", "missing"}
"""Options that the command line repeats."""
SINGLE = {field.name for field in fields(RunRequest)} - REPEATED - {"method"}  # a policy of join has several


def as_option(name: str, value: Any) -> Any:
    """Return a value as the command line has it: assignments as `key=value`, and lists where it repeats an option."""
    if isinstance(value, Mapping):
        return [f"{key}={as_word(one)}" for key, one in value.items()]
    if name in REPEATED and isinstance(value, str):
        return [value]
    return value


def as_word(value: Scalar | Path) -> str:
    """Return a value as a word of the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


COMMAND_WORDS = {"settings": "set", "sets": "set", "columns": "column", "names": "name"}
"""Name of an argument -> name of the command line, which repeats the option."""


def as_words(options: Words) -> list[str]:
    """Return options as words of the command line; an option that is None or empty has none."""
    words = []
    for name, value in options.items():
        flag = f"--{COMMAND_WORDS.get(name, name).replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag if value else f"--no-{flag[2:]}"]
        elif value is not None and value != "":
            found = as_option(COMMAND_WORDS.get(name, name), value)
            is_list = isinstance(found, list | tuple) and name not in SINGLE
            words += [f"{flag}={as_word(one)}" for one in (found if is_list else [found])]
    return words


def refuse_further(options: Words, command: str, known: Sequence[str]) -> None:
    """Refuse options that nothing has taken.

    Raises:
        ConfigError: There are some.
    """
    for name in options:
        raise ConfigError(f"{command} has no option '{name}'{hint(name, known) or '; see its help'}")
