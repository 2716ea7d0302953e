"""Every form of rules data behind one door."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from client.data.tables.formats import TABLES, find_tables, suffix_of
from client.data.tables.reader import read_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.rules.data.assemble import to_dataset
from client.tasks.rules.data.home_assistant.reader import is_home_assistant, read_home_assistant
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.ifttt import Setup, is_recrules, read_recrules
from client.tasks.rules.data.rows import RuleRows, check_vocabulary, derive_catalogue, join_rows, to_rows
from client.tasks.rules.schema import SCHEMA
from common.errors import DataError
from common.tasks.rules.vocabulary import RuleCatalogue


def read_homes(
    source: Path | str,
    catalogue: RuleCatalogue | None = None,
    *,
    setup: Setup = "A",
    dialect: Dialect = DEFAULT_DIALECT,
) -> Homes:
    """Read the homes of one source.

    Args:
        source: Table (CSV, TSV, JSON lines or Parquet), folder of tables, folder in the RecRules form, or automations of
            Home Assistant: a file, a configuration folder, or a folder of such folders. Tables but Parquet may be gzipped.
        catalogue: Vocabulary of the federation; None for the names in the data.
        setup: Grouping of names in the RecRules form.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed.
        VocabularyError: The data use names that the catalogue lacks.
    """
    dialect.check(SCHEMA)
    if is_home_assistant(path := Path(source)):
        rows, notes = read_home_assistant(path)
        check_vocabulary(rows, catalogue or derive_catalogue(rows))
        homes = to_dataset(rows, catalogue or derive_catalogue(rows))
        return replace(homes, notes=(*notes, *homes.notes))
    rows = join_rows(list(_rows(path, setup, dialect, catalogue)))
    return to_dataset(rows, catalogue or derive_catalogue(rows))


def _rows(path: Path, setup: Setup, dialect: Dialect, catalogue: RuleCatalogue | None) -> Iterator[RuleRows]:
    """Yield the rows of each file, which the catalogue, if any, can express."""
    if is_recrules(path):
        rows = read_recrules(path, setup)
        check_vocabulary(rows, catalogue or derive_catalogue(rows))
        yield rows
        return
    if path.is_file() and suffix_of(path) not in TABLES:
        form = suffix_of(path) or path.suffix
        raise DataError(f"'{form}' is no known form of table; give one of {', '.join(TABLES)}", path)
    for file in find_tables(path):
        table = read_table(file, SCHEMA, dialect)
        rows = to_rows(table)
        check_vocabulary(rows, catalogue or derive_catalogue(rows), table)
        yield rows
