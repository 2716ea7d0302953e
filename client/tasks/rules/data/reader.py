"""Every form of rules data behind one door."""

from pathlib import Path

from client.data.sources import demo_range
from client.data.tables.reader import suffix_of, tables_in
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.ifttt import Setup, is_recrules, read_recrules
from client.tasks.rules.data.rows import Row, to_dataset
from client.tasks.rules.data.table import TABLES, read_table
from common.errors import DataError, VocabularyError
from common.tasks.rules.demo import demo_catalogue
from common.tasks.rules.vocabulary import RuleCatalogue

DEMO_HOMES = 400
"""Homes in `demo` when no range is named."""


def read_homes(
    source: Path | str, catalogue: RuleCatalogue | None = None, *, seed: int = 0, setup: Setup = "A"
) -> Homes:
    """Read the homes of one source.

    Args:
        source: A table (CSV, TSV or Parquet), a folder of tables, a folder in the RecRules form, or the embedded `demo`,
            `demo:50-100` being its homes 50 to 99. All but Parquet may be gzipped.
        catalogue: The federation's vocabulary; without one it is what the data use.
        seed: Of the demo homes.
        setup: Of the RecRules form.

    Raises:
        DataError: The data are missing, empty or malformed.
        VocabularyError: The data use names that the catalogue lacks.
    """
    if demo := demo_range(source, DEMO_HOMES):
        return _demo(*demo, seed, catalogue)
    return to_dataset(_rows(Path(source), setup), catalogue)


def _demo(start: int, stop: int, seed: int, catalogue: RuleCatalogue | None) -> Homes:
    if catalogue is not None and catalogue != demo_catalogue():
        raise VocabularyError("the demo homes speak the demo catalogue, the federation another; give your own data")
    return Homes(demo_homes(start, stop, seed), demo_catalogue())


def _rows(path: Path, setup: Setup) -> list[Row]:
    if not path.exists():
        raise DataError("no such file or folder; give a table, a folder of them, or 'demo'", path)
    if path.is_file():
        form = suffix_of(path) or path.suffix
        if form not in TABLES:
            raise DataError(f"'{form}' is no known form of table; give one of {', '.join(TABLES)}", path)
        return read_table(path)
    if is_recrules(path):
        return read_recrules(path, setup)
    tables = tables_in(path, TABLES)
    if not tables:
        raise DataError(f"the folder holds no table ({', '.join(TABLES)}) and is not in the RecRules form", path)
    return [row for table in tables for row in read_table(table)]
