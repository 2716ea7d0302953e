"""Reader of sessions in all forms, as clicks and as visitors under a vocabulary."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from client.data.partition import floor_share
from client.data.summary import DataSummary, Dropped, locate
from client.data.tables.cells import Codes
from client.data.tables.files import TABLES, Content, find_tables, load, suffix_of
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, find_names
from client.data.tables.table import Table
from client.tasks.sessions.data.log import (
    CASE,
    GAP,
    NOBODY,
    TEST,
    TRAIN,
    Log,
    join_logs,
    log_of_clicks,
    log_of_rows,
    log_of_sessions,
    order_clicks,
    split_items,
)
from client.tasks.sessions.data.public_sets import layout_of, parts_of, read_original
from client.tasks.sessions.data.visitors import ITEM, ITEMS, SCHEMA, Case, Visitor, Visits, cases_of
from common.arrays import Ints
from common.errors import DataError
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Clicks, Items
from common.text import count


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


def to_dataset(log: Log, items: Items | None, group: int, path: Path) -> Visits:
    """Return visitors with sessions of two clicks or more; a user without such sessions has none.

    Test cases without a user are partitioned among the visitors in order, in runs of nearly equal length.

    Args:
        log: What was read.
        items: The vocabulary; without one, what the training sessions use, most clicked first, then by name.
        group: Number of consecutive sessions without a user that make a visitor.
        path: Named in errors.

    Raises:
        DataError: There is no visitor, or no session to make a vocabulary of.
    """
    usable = grouped(log.long_enough(), group)
    items = items or _vocabulary(usable, path)
    listed = _listed(usable, items)
    notes = (*usable.notes, *_notes(log, usable, listed))
    visitors = tuple(_visitors(listed))
    if not visitors:
        raise DataError("no session of two clicks or more; there is nothing to learn from", path)
    return Visits(visitors, items, notes)


def grouped(log: Log, group: int) -> Log:
    """Give each run of `group` consecutive training sessions without a user a user `group-00001`, ….

    A note says so if there are several.
    """
    stray = (log.user == NOBODY) & (log.part == TRAIN)
    if not stray.any():
        return log
    numbers, place = np.unique(log.session[stray], return_inverse=True)
    names = [f"group-{number + 1:05d}" for number in range(-(-len(numbers) // group))]
    user = log.user.copy()
    user[stray] = len(log.users) + place.ravel() // group
    notes = list(log.notes)
    if len(names) > 1:
        each = f"{count(len(names), 'visitor')} of {count(group, 'session')} each, in order"
        notes.insert(0, f"{each}; without a column user nothing says whose the sessions are")
    return replace(log, user=user, users=[*log.users, *names], notes=tuple(notes))


def _vocabulary(log: Log, path: Path) -> Items:
    clicks = np.bincount(log.item[log.part == TRAIN], minlength=len(log.names)).tolist()
    used = [k for k, count in enumerate(clicks) if count]
    if not used:
        raise DataError("no session of two clicks or more; there is nothing to learn from", path)
    return Items(items=tuple(log.names[k] for k in sorted(used, key=lambda k: (-clicks[k], log.names[k]))))


def _listed(log: Log, items: Items) -> Log:
    """Return clicks on items of the vocabulary, as indices; test cases need their target among them."""
    index = {name: k for k, name in enumerate(items.items)}
    item = np.array([index.get(name, -1) for name in log.names], np.int64)[log.item]
    senseless = log.session[log.last & (log.part == CASE) & (item < 0)]
    listed = replace(log, item=item, names=items.items)
    return listed.where((item >= 0) & ~np.isin(log.session, senseless)).long_enough()


def _visitors(log: Log) -> Iterator[Visitor]:
    """Yield the visitors in the order of their names."""
    sessions: dict[int, list[Clicks]] = defaultdict(list)
    cases: dict[int, list[Case]] = defaultdict(list)
    first = log.starts
    owners, parts = log.user[first].tolist(), log.part[first].tolist()
    pieces = np.split(log.item, first[1:])  # one empty piece if there is no session
    for owner, part, clicks in zip(owners, parts, pieces, strict=False):
        if part == TRAIN:
            sessions[owner].append(clicks)
        else:
            cases[owner] += cases_of(clicks) if part == TEST else [Case(clicks[:-1], int(clicks[-1]))]
    shares = _runs(cases[NOBODY], len(log.users))
    for user in sorted(range(len(log.users)), key=lambda k: log.users[k]):
        yield Visitor(log.users[user], tuple(sessions[user]), (*cases[user], *shares[user]))


def _runs(cases: Sequence[Case], parts: int) -> list[Sequence[Case]]:
    return [cases[k * len(cases) // parts : (k + 1) * len(cases) // parts] for k in range(parts)]


def _notes(log: Log, usable: Log, listed: Log) -> Iterator[str]:
    """Yield notes on what was left out."""
    if short := len(log.starts) - len(usable.starts):
        yield f"{short} sessions of one click dropped"
    strange = len(usable.item) - len(listed.item)
    if strange:
        lost = len(usable.starts) - len(listed.starts)
        yield f"{strange} clicks skipped on or beside items outside the vocabulary, {lost} sessions with nothing left"
    cases = _cases(usable)
    if missed := cases - _cases(listed):
        yield f"{missed} of {cases} test cases left out: they ask for items outside the vocabulary or follow none within"


def _cases(log: Log) -> int:
    """Return the number of test cases of all sessions."""
    return int(
        ((log.part == TEST).sum() - (log.last & (log.part == TEST)).sum()) + (log.last & (log.part == CASE)).sum()
    )


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


def summarize(options: SessionsOptions, visits: Visits, tables: Sequence[Table]) -> DataSummary:
    """Return sessions of each visitor, those to train on and those held out."""
    sessions = np.array([len(visitor.sessions) for visitor in visits.units], np.int64)
    held = [0 if one.test else floor_share(options.test_share, len(one.sessions)) for one in visits.units]
    brought = np.array([len(one.test) for one in visits.units], np.int64)
    return DataSummary(
        record=("session", "sessions"),
        records=sessions,
        train=sessions - np.array(held, np.int64),
        test=np.where(brought, brought, held),
        need="a session needs two clicks; without a column session, a pause of 30 minutes ends one",
        totals={"item": len(visits.vocabulary.items)},
        dropped=tuple(_short(tables)),
    )


def _short(tables: Sequence[Table]) -> Iterator[Dropped]:
    """Yield the sessions of one click of all tables."""
    rows = [_short_rows(table) for table in tables]
    if total := sum(map(len, rows)):
        table, first = next((table, places) for table, places in zip(tables, rows, strict=True) if len(places))
        before = sum(len(other) for other in tables[: tables.index(table)])
        yield Dropped(total, ("session", "sessions"), "of one click dropped", locate(tables, before + int(first.min())))


def _short_rows(table: Table) -> Ints:
    """Return the rows of a table whose click is alone in its session."""
    if ITEMS in table:
        items = table.columns[ITEMS].fill_null("").to_pylist()
        return np.flatnonzero([len(split_items(text)) == 1 for text in items])
    clicks = order_clicks(table, GAP)
    alone: Codes = clicks.order[np.bincount(clicks.session)[clicks.session] == 1]
    return clicks.rows[alone]
