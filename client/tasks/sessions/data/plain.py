"""Plain files: one session a line, or one test example a line."""

from client.data.tables.formats import Content
from client.tasks.sessions.data.click_log import split_items
from client.tasks.sessions.data.log import CASE, TRAIN, Log, log_of_sessions
from common.errors import DataError


def read_lines(content: Content) -> Log:
    """Read one session a line, item ids separated by commas or blanks; they belong to no user."""
    return log_of_sessions([split_items(text) for _, text in content.lines()], TRAIN)


def read_pairs(content: Content) -> Log:
    """Read one test example a line, as SR-GNN writes them: the clicks so far, a tab, the next click.

    Raises:
        DataError: A line is no example; with its number.
    """
    pairs = []
    for line, text in content.lines():
        prefix, tab, target = text.partition("\t")
        if not (tab and split_items(prefix) and target.strip()):
            remedy = "write the clicks so far, a tab and the next click"
            raise DataError(f"not a test example; {remedy}", content.path, line)
        pairs.append([*split_items(prefix), target.strip()])
    return log_of_sessions(pairs, CASE)
