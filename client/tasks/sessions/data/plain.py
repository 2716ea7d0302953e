"""Plain files: one session a line, or one test example a line."""

from pathlib import Path

from client.data.tables.reader import opened
from client.tasks.sessions.data.click_log import split_items
from client.tasks.sessions.data.log import CASE, TRAIN, Log, log_of_sessions
from common.errors import DataError


def read_lines(path: Path) -> Log:
    """One session a line, item ids separated by commas or blanks, blank lines skipped; nobody's in particular.

    Raises:
        DataError: The file cannot be read or holds no session.
    """
    with opened(path) as file:
        sessions = [split_items(line) for line in file if line.strip()]
    if not sessions:
        raise DataError("the file is empty; write one session a line, item ids separated by blanks", path)
    return log_of_sessions(sessions, TRAIN)


def read_pairs(path: Path) -> Log:
    """One test example a line, as SR-GNN's preprocessing leaves them: the clicks so far, a tab, the next click.

    Raises:
        DataError: The file cannot be read, holds no example, or a line is no example; with the line.
    """
    pairs = []
    with opened(path) as file:
        for line, text in enumerate(file, start=1):
            prefix, tab, target = text.rstrip("\r\n").partition("\t")
            if not (tab and split_items(prefix) and target.strip()):
                raise DataError("not a test example; write the clicks so far, a tab and the next click", path, line)
            pairs.append([*split_items(prefix), target.strip()])
    if not pairs:
        raise DataError("the file is empty; write one test example a line", path)
    return log_of_sessions(pairs, CASE)
