"""Every form of traffic data behind one door."""

from pathlib import Path

from client.data.dataset import demo_dataset
from client.data.tables.formats import find_tables, load, suffix_of
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.traffic.data.assemble import to_dataset
from client.tasks.traffic.data.generator import demo_series
from client.tasks.traffic.data.published_formats import read_original
from client.tasks.traffic.data.readings import Readings, join_readings, order_variables, to_readings
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.data.tmas import read_volumes
from client.tasks.traffic.schema import SCHEMA, SUFFIXES
from common.tasks.traffic.demo import demo_variables
from common.tasks.traffic.vocabulary import SensorVariables

DEMO_SITES = 24
"""Sites in `demo` when no range is named."""


def read_series(
    source: Path | str, measures: SensorVariables | None = None, *, seed: int = 0, dialect: Dialect = DEFAULT_DIALECT
) -> Sensors:
    """Read the series of one source, in the order of their names.

    Args:
        source: A table in long form, `timestamp,site,<variable>…` (CSV, TSV or Parquet; without `site` it is one series,
            named after the file); a published set as a file or folder; FHWA's station volumes (`.vol`); a folder of such
            files; or the embedded `demo`, `demo:3-9` being its sites 3 to 8. All may be gzipped.
        measures: The federation's variables and step. Without them the variables are the data's own, the step is an hour
            or, of coarser data, theirs.
        seed: Of the demo sites.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, lack a variable, or are coarser than the step.
        VocabularyError: They have variables that the federation lacks; or the demo, under other measures than its own.
    """
    if demo := demo_dataset(source, DEMO_SITES, demo_series, seed, demo_variables(), measures):
        return demo
    path = Path(source)
    parts = [(file, _file(file, dialect)) for file in find_tables(path, SUFFIXES)]
    variables = measures.variables if measures else parts[0][1].variables
    return to_dataset(join_readings([order_variables(part, variables, file) for file, part in parts]), measures, path)


def _file(path: Path, dialect: Dialect) -> Readings:
    """Read one file, whose form shows in its first line."""
    content = load(path)
    if suffix_of(path) == ".vol":
        return read_volumes(content)
    cells = detect_cells(content, SCHEMA, dialect)
    return read_original(cells) or to_readings(to_table(cells, SCHEMA, dialect))
