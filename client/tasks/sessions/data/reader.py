"""Every form of session data behind one door."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from client.data.tables.formats import TABLES, find_tables, load, suffix_of
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.data.tables.titles import find_names
from client.tasks.sessions.data.assemble import to_dataset
from client.tasks.sessions.data.click_log import log_of_clicks, log_of_rows
from client.tasks.sessions.data.log import CASE, TEST, TRAIN, Log, join_logs
from client.tasks.sessions.data.plain import read_lines, read_pairs
from client.tasks.sessions.data.published_folder import parts_of
from client.tasks.sessions.data.published_formats import layout_of, read_original
from client.tasks.sessions.data.sessionize import GAP
from client.tasks.sessions.data.visitors import Visits
from client.tasks.sessions.schema import ITEM, ITEMS, SCHEMA
from common.tasks.sessions.vocabulary import Items


def read_visitors(
    source: Path | str,
    items: Items | None = None,
    *,
    test: Path | None = None,
    group: int = 20,
    dialect: Dialect = DEFAULT_DIALECT,
) -> Visits:
    """Read the visitors of one source.

    Args:
        source: Sessions as lines of item ids (`.txt`); a click log (CSV, TSV or Parquet) with the columns item, user or
            session, timestamp and optionally split; a published set as a file or folder; a folder with `train.txt` and
            optionally `test.txt`; or a folder of tables. All may be gzipped.
        items: Vocabulary of the federation; clicks on other items are skipped and counted in a note. None for the items
            of the training sessions, most clicked first, then by name.
        test: File of sessions to hold out, in any of the forms, besides those that the source itself holds out.
        group: Number of consecutive sessions of a visitor if the source names no users.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, or hold no session of two clicks.
    """
    path = Path(source)
    dialect.check(SCHEMA)
    published = parts_of(path) if path.is_dir() else []
    parts = published or [(file, TRAIN) for file in find_tables(path)]
    parts += [(test, TEST)] if test else []
    log = join_logs([_file(file, part, dialect) for file, part in parts])
    return to_dataset(log, items, group, path)


def _file(path: Path, part: int, dialect: Dialect) -> Log:
    """Read one file; of a file of test sessions everything is held out, whatever it says itself."""
    if part == CASE:
        return read_pairs(load(path))
    log = _sessions(path, dialect)
    return replace(log, part=np.full(len(log.item), TEST)) if part == TEST else log


def _sessions(path: Path, dialect: Dialect) -> Log:
    """Read the sessions of a file, whose form shows in its first line."""
    content = load(path)
    cells = detect_cells(content, SCHEMA, dialect)
    layout = layout_of(cells.titles)
    if layout:
        return read_original(content, layout)
    names = find_names(cells.titles, SCHEMA, dialect)
    is_table = len(names) > 1 and not names.isdisjoint({ITEM, ITEMS})
    if not is_table and cells.unit == "line" and suffix_of(path) not in TABLES:
        return read_lines(content)
    table = to_table(cells, SCHEMA, dialect)
    return log_of_rows(table) if ITEMS in table else log_of_clicks(table, GAP)
