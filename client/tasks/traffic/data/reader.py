"""Every form of traffic data behind one door."""

from pathlib import Path

from client.data.tables.formats import find_tables, load, suffix_of
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.traffic.data.assemble import to_dataset
from client.tasks.traffic.data.published_formats import read_original
from client.tasks.traffic.data.readings import Readings, join_readings, order_variables, to_readings
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.data.tmas import read_volumes
from client.tasks.traffic.schema import SCHEMA, SUFFIXES
from common.tasks.traffic.vocabulary import SensorVariables


def read_series(
    source: Path | str, measures: SensorVariables | None = None, *, dialect: Dialect = DEFAULT_DIALECT
) -> Sensors:
    """Read the series of one source, in the order of their names.

    Args:
        source: Table in long form, `timestamp,site,<variable>…` (CSV, TSV or Parquet; without `site` it is one series,
            named after the file); a published set as a file or folder; FHWA's station volumes (`.vol`); or a folder of
            such files. All may be gzipped.
        measures: Variables and step of the federation. None for the variables of the data, and a step of one hour or, for
            coarser data, their own.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, lack a variable, or are coarser than the step.
        VocabularyError: They have variables that the federation lacks.
    """
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
