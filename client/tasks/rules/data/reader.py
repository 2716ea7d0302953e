"""Every form of rules data behind one door."""

from collections.abc import Iterator
from pathlib import Path

from client.data.sources import demo_range
from client.data.tables.formats import TABLES, suffix_of, tables_in
from client.data.tables.reader import read_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.rules.data.assemble import to_dataset
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.ifttt import Setup, is_recrules, read_recrules
from client.tasks.rules.data.rows import RuleRows, check_vocabulary, derive_catalogue, join_rows, to_rows
from client.tasks.rules.schema import SCHEMA
from common.errors import DataError, VocabularyError
from common.tasks.rules.demo import demo_catalogue
from common.tasks.rules.vocabulary import RuleCatalogue

DEMO_HOMES = 400
"""Homes in `demo` when no range is named."""


def read_homes(
    source: Path | str,
    catalogue: RuleCatalogue | None = None,
    *,
    seed: int = 0,
    setup: Setup = "A",
    dialect: Dialect = DEFAULT_DIALECT,
) -> Homes:
    """Read the homes of one source.

    Args:
        source: A table (CSV, TSV, JSON lines or Parquet), a folder of tables, a folder in the RecRules form, or the
            embedded `demo`, `demo:50-100` being its homes 50 to 99. All but Parquet may be gzipped.
        catalogue: The federation's vocabulary; without one it is what the data use.
        seed: Of the demo homes.
        setup: Of the RecRules form.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed.
        VocabularyError: The data use names that the catalogue lacks.
    """
    if demo := demo_range(source, DEMO_HOMES):
        return _demo(*demo, seed, catalogue)
    dialect.check(SCHEMA)
    rows = join_rows(list(_rows(Path(source), setup, dialect, catalogue)))
    return to_dataset(rows, catalogue or derive_catalogue(rows))


def _demo(start: int, stop: int, seed: int, catalogue: RuleCatalogue | None) -> Homes:
    if catalogue is not None and catalogue != demo_catalogue():
        raise VocabularyError(
            "the embedded homes do not fit the catalogue of this federation; set --data to your own data"
        )
    return Homes(demo_homes(start, stop, seed), demo_catalogue())


def _rows(path: Path, setup: Setup, dialect: Dialect, catalogue: RuleCatalogue | None) -> Iterator[RuleRows]:
    """Yield the rows of each file, which the catalogue, if any, can express."""
    if is_recrules(path):
        rows = read_recrules(path, setup)
        check_vocabulary(rows, catalogue or derive_catalogue(rows))
        yield rows
        return
    for file in _files(path):
        table = read_table(file, SCHEMA, dialect)
        rows = to_rows(table)
        check_vocabulary(rows, catalogue or derive_catalogue(rows), table)
        yield rows


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DataError("no such file or folder; give a table, a folder of them, or 'demo'", path)
    if path.is_dir():
        tables = tables_in(path)
        if not tables:
            raise DataError(f"the folder holds no table ({', '.join(TABLES)}) and is not in the RecRules form", path)
        return tables
    if suffix_of(path) not in TABLES:
        form = suffix_of(path) or path.suffix
        raise DataError(f"'{form}' is no known form of table; give one of {', '.join(TABLES)}", path)
    return [path]
