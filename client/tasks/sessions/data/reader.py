"""Reader of sessions in all forms, as clicks and as visitors under a vocabulary.

Published click logs are recognized by their first line (algorithms.md §2.5).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from client.data.dataset import DataSummary, floor_share
from client.data.tables.account import ROWS, RowAccount, with_account
from client.data.tables.files import TABLES, Content, files_in, find_tables, load, plain_name, split_files, suffix_of
from client.data.tables.files import TEST as HELD_OUT
from client.data.tables.reader import detect_cells, read_table, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Codes, Column, Dialect, TableSchema, find_names, normalize_title
from client.data.tables.table import Table, split_items, split_lists, to_flags
from client.data.tables.text import JsonLines
from client.tasks.sessions.data.log import (
    CASE,
    DAY,
    EIGHT_HOURS,
    GAP,
    NOBODY,
    TEST,
    TRAIN,
    Cut,
    Log,
    Seconds,
    join_logs,
    log_of_clicks,
    log_of_sessions,
)
from client.tasks.sessions.data.visitors import (
    ITEM,
    ITEMS,
    SCHEMA,
    SESSION,
    TIME,
    USER,
    Case,
    Visitor,
    Visits,
    cases_of,
)
from common.arrays import Flags
from common.errors import DataError
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Clicks, Items
from common.text import count, one_name

DAY_SECONDS = 24 * 60 * 60
CLICKS = "click", "clicks"


@dataclass(frozen=True)
class Recipe:
    """Steps in the order in which they are taken; 0 leaves a step out.

    Args:
        top: Most clicked items that are kept.
        least: Users who clicked an item that is kept; clicks, where the source knows no users.
        longest: Clicks of a session that is kept.
        test_days: Sessions that end in the last so many days are the test part; without, the split cuts some off.
        by_date: Days are counted by the calendar (UTC), not back from the last click: for sources that tell dates only.
        fraction: Keep the latest training sessions, with 1/fraction of all examples.
    """

    top: int = 0
    least: int = 0
    longest: int = 0
    test_days: float = 0
    by_date: bool = False
    fraction: int = 1


def prepare(log: Log, recipe: Recipe) -> Log:
    """Take the steps; sessions left with one click are dropped after each that drops clicks."""
    if recipe.top:
        clicks = np.bincount(log.item, minlength=len(log.names))
        log = log.where(np.isin(log.item, np.argsort(-clicks, kind="stable")[: recipe.top]))
    log = log.long_enough()
    log = _supported(log, recipe.least).long_enough() if recipe.least else log
    log = log.where(log.lengths <= recipe.longest) if recipe.longest else log
    log = _last_days_for_test(log, recipe) if recipe.test_days and len(log.item) else log
    return _latest(log, recipe.fraction) if recipe.fraction > 1 else log


def active_users(log: Log) -> Log:
    """Return the log without users who have no session left."""
    if not log.users:
        return log
    active, user = np.unique(log.user, return_inverse=True)
    return replace(log, user=user.ravel().astype(np.int64), users=[log.users[k] for k in active.tolist()])


def _supported(log: Log, least: int) -> Log:
    item = log.item
    if (log.user != NOBODY).all():
        item = np.unique(np.stack([log.item, log.user]), axis=1)[0]
    return log.where(np.bincount(item, minlength=len(log.names))[log.item] >= least)


def _last_days_for_test(log: Log, recipe: Recipe) -> Log:
    day = log.time / DAY_SECONDS
    ends = np.floor(day) if recipe.by_date else day
    session = np.unique(log.session, return_inverse=True)[1].ravel()
    held = ends[log.last][session] > ends.max() - recipe.test_days
    return replace(log, part=np.where(held, TEST, log.part))


def _latest(log: Log, fraction: int) -> Log:
    """Keep the latest sessions; SR-GNN cuts expanded examples, here the session at the cut stays whole."""
    train = log.last & (log.part == TRAIN)
    sessions, examples = log.session[train], log.lengths[train] - 1
    latest_first = np.argsort(-log.time[train], kind="stable")
    before = np.cumsum(examples[latest_first]) - examples[latest_first]
    latest = sessions[latest_first][before < examples.sum() / fraction]
    return log.where((log.part != TRAIN) | np.isin(log.session, latest))


FILES = (
    r"yoochoose-clicks\.dat",
    r"train-item-views\.csv",
    r"(loc-)?gowalla_totalcheckins\.txt",
    r"userid-timestamp-artid-artname-traid-traname\.tsv",
    r"events\.csv",
)
"""Names of the files, as patterns in lower case."""

ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT")


@dataclass(frozen=True)
class Layout:
    """One published log.

    Args:
        titles: Titles of its columns, normalize_title written, or the names of the schema's positions.
        recipe: Steps of §2.5.
        schema: Columns that are read.
        cut: Where a session ends, if it has no sessions.
    """

    titles: tuple[str, ...]
    recipe: Recipe
    schema: TableSchema
    cut: Cut = GAP


def _schema(*columns: Column, positions: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema((Column(ITEM, "text", ("itemid",)), *columns), positions=positions)


SESSION_ID, USER_ID = Column(SESSION, "text", ("sessionid",)), Column(USER, "text", ("visitorid",))
WHEN = Column(TIME, "time")
YOOCHOOSE_TITLES = (SESSION, TIME, ITEM, "category")
YOOCHOOSE = Layout(
    YOOCHOOSE_TITLES, Recipe(least=5, test_days=1, fraction=64), _schema(SESSION_ID, WHEN, positions=YOOCHOOSE_TITLES)
)
"""1/64."""
GOWALLA_TITLES = (USER, TIME, "latitude", "longitude", ITEM)
GOWALLA = Layout(
    GOWALLA_TITLES, Recipe(top=3_000, longest=20), _schema(USER_ID, WHEN, positions=GOWALLA_TITLES), cut=DAY
)
LASTFM_TITLES = (USER, TIME, ITEM, "artist", "trackid", "track")
LASTFM = Layout(
    LASTFM_TITLES,
    Recipe(top=40_000, longest=20),
    TableSchema((USER_ID, WHEN, Column(ITEM, "text", blank="missing")), positions=LASTFM_TITLES),
    cut=EIGHT_HOURS,
)
DIGINETICA = Layout(
    ("sessionid", "userid", "itemid", "timeframe", "eventdate"),
    Recipe(least=5, test_days=7, by_date=True),
    _schema(SESSION_ID, Column("timeframe", "number"), Column("eventdate", "time")),
)
"""Its users are not read: they are known for few sessions."""
RETAILROCKET = Layout(
    (TIME, "visitorid", "event", "itemid", "transactionid"),
    Recipe(least=5, longest=20),
    _schema(USER_ID, WHEN, Column("event", "text")),
)
LAYOUTS = (YOOCHOOSE, GOWALLA, LASTFM, DIGINETICA, RETAILROCKET)


def layout_of(cells: Sequence[str]) -> Layout | None:
    """Return the published log that has this first line, if any."""
    plain = tuple(map(normalize_title, cells))
    begins_with_data = len(cells) > 1 and ISO_TIME.match(cells[1])
    fits = (
        layout
        for layout in LAYOUTS
        if (
            begins_with_data and len(cells) == len(layout.titles) if layout.schema.positions else plain == layout.titles
        )
    )
    return next(fits, None)


def read_original(content: Content, layout: Layout, account: RowAccount) -> Log:
    """Read and prepare a published log; users with no session left are left out.

    Raises:
        DataError: As of any click log, with line and column.
    """
    table = read_table(content, layout.schema, Dialect(account=account))
    clicks = table.where(_is_click(table))
    log = log_of_clicks(clicks, layout.cut, _time(clicks))
    prepared = active_users(prepare(log, layout.recipe))
    account.lose(table.numbered, clicks.numbered, ROWS, "without a click on a known item skipped")
    account.lose(log.row, prepared.row, CLICKS, "left out by the rules for this published set")
    return prepared


def _is_click(table: Table) -> Flags:
    """Return Retailrocket's views, and LastFM's plays of artists that have an id."""
    if "event" in table:
        return to_flags(pc.equal(table.columns["event"], "view"))
    return table.filled(ITEM)


def _time(table: Table) -> Seconds | None:
    """Return Diginetica's times, a day and milliseconds of the session; None for other logs."""
    if "timeframe" not in table:
        return None
    return table.numbers("eventdate") + table.numbers("timeframe") / 1000


@dataclass(frozen=True)
class PublishedSessions:
    """Names of a form's files, as patterns in lower case and without `.gz`, in the order of reading.

    Args:
        train: At least one file must be there.
        test: The test part, which may be missing.
        part: What the test part holds.
    """

    train: tuple[str, ...]
    test: str = ""
    part: int = TEST


FORMS = (
    PublishedSessions((r"users_train\.txt", r"users_valid\.txt", r"users_test\.txt")),
    PublishedSessions((r"train_sessions\.txt",), r"test_pairs\.tsv", CASE),
    PublishedSessions((r".+_train_full\.txt",), r".+_test\.txt"),
    PublishedSessions((r"train\.(txt|csv|tsv|jsonl|ndjson|parquet)",), r"test\.(txt|csv|tsv|jsonl|ndjson|parquet)"),
    *(PublishedSessions((name,)) for name in FILES),
)
"""Gowalla with users; SR-GNN's sets as texts; session-rec's; plain files; the originals.

Gowalla's own parts are ignored: they are a fraction of the whole."""


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    return bool(parts_of(folder))


def parts_of(folder: Path) -> list[tuple[Path, int]]:
    """Return the files of the first form that fits, each with its part; none if no form does.

    Raises:
        DataError: Parts of a split in Parquet are missing.
    """
    if splits := split_files(folder):
        return [(file, TEST if split == HELD_OUT else TRAIN) for split, file in splits]
    for form in FORMS:
        train = [(path, TRAIN) for pattern in form.train for path in _files(folder, pattern)]
        if train:
            return train + [(path, form.part) for path in _files(folder, form.test)]
    return []


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in files_in(folder) if re.fullmatch(pattern, plain_name(path))]


def read_pairs(content: Content, account: RowAccount) -> Log:
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
    return log_of_sessions(pairs, CASE, _numbered(content, len(pairs), account))


def _numbered(content: Content, lines: int, account: RowAccount) -> Codes:
    """Return the numbers in the account of lines that are a session each."""
    return account.open(JsonLines(content, [], {}), lines) + np.arange(lines)


def to_dataset(log: Log, items: Items | None, group: int, path: Path, account: RowAccount) -> Visits:
    """Return visitors with sessions of two clicks or more; a user without such sessions has none.

    Test cases without a user are partitioned among the visitors in order, in runs of nearly equal length.

    Without a vocabulary it is what the training sessions use, most clicked first, then by name. `group` is the number of
    consecutive sessions without a user that make a visitor; errors name `path`.

    Raises:
        DataError: There is no visitor, or no session to make a vocabulary of.
    """
    usable = grouped(log.long_enough(), group)
    items = items or _vocabulary(usable, path)
    listed = _listed(usable, items)
    notes = (*usable.notes, *_notes(usable, listed))
    account.lose(log.row, usable.row, ("session", "sessions"), "of one click dropped")
    noun = CLICKS if _rows(log) == len(log.row) else ROWS
    account.lose(usable.row, listed.row, noun, "skipped on or beside items outside the vocabulary")
    visitors = tuple(_visitors(listed))
    if not visitors:
        raise DataError("no session of two clicks or more; there is nothing to learn from", path)
    reading = account.close(_rows(listed) + len(log.people))
    return Visits(visitors, items, (*account.notes_of(reading), *notes), reading=reading)


def grouped(log: Log, group: int) -> Log:
    """Give each run of `group` consecutive training sessions without a user a user `group-00001`, ….

    A note says so if there are several.
    """
    stray = (log.user == NOBODY) & (log.part == TRAIN)
    if not stray.any():
        return log
    numbers, number_of = np.unique(log.session[stray], return_inverse=True)
    names = [f"group-{number + 1:05d}" for number in range(-(-len(numbers) // group))]
    user = log.user.copy()
    user[stray] = len(log.users) + number_of.ravel() // group
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
    owners, splits = log.user[first].tolist(), log.part[first].tolist()
    pieces = np.split(log.item, first[1:])  # one empty piece if there is no session
    for owner, part, clicks in zip(owners, splits, pieces, strict=False):
        if part == TRAIN:
            sessions[owner].append(clicks)
        else:
            cases[owner] += cases_of(clicks) if part == TEST else [Case(clicks[:-1], int(clicks[-1]))]
    stray, number = cases[NOBODY], len(log.users)
    shares = [stray[k * len(stray) // number : (k + 1) * len(stray) // number] for k in range(number)]
    for user in sorted(range(len(log.users)), key=lambda k: log.users[k]):
        yield Visitor(log.users[user], tuple(sessions[user]), (*cases[user], *shares[user]))


def _notes(usable: Log, listed: Log) -> Iterator[str]:
    """Yield notes on what was left out within rows that are kept."""
    rows_lost = _rows(usable) - _rows(listed)
    if (strange := len(usable.item) - len(listed.item)) > rows_lost:
        lost = len(usable.starts) - len(listed.starts)
        yield f"{strange} clicks skipped on or beside items outside the vocabulary, {lost} sessions with nothing left"
    cases = _cases(usable)
    if missed := cases - _cases(listed):
        yield f"{missed} of {cases} test cases left out: they ask for items outside the vocabulary or follow none within"


def _rows(log: Log) -> int:
    """Return the number of rows with clicks; those of a row that is a session stand together."""
    return int((np.diff(log.row, prepend=-1) != 0).sum())


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
    dialect = with_account(dialect, SCHEMA)
    published = parts_of(path) if path.is_dir() else []
    files = published or [(file, TRAIN) for file in find_tables(path)]
    files += [(test, TEST)] if test else []
    log = join_logs([_file(file, part, dialect) for file, part in files])
    return to_dataset(log, items, group, path, dialect.account)


def _file(path: Path, part: int, dialect: Dialect) -> Log:
    """Read one file; of a file of test sessions everything is held out, whatever it says itself."""
    if part == CASE:
        return read_pairs(load(path, dialect.encoding), dialect.account)
    log = _sessions(path, dialect)
    return replace(log, part=np.full(len(log.item), TEST)) if part == TEST else log


def _sessions(path: Path, dialect: Dialect) -> Log:
    """Read the sessions of a file, whose form shows in its first line."""
    content = load(path, dialect.encoding, dialect.skip_lines)
    cells = detect_cells(content, SCHEMA, dialect)
    layout = layout_of(cells.titles)
    if layout:
        return read_original(content, layout, dialect.account)
    names = find_names(cells.titles, SCHEMA, dialect)
    is_table = len(names) > 1 and not names.isdisjoint({ITEM, ITEMS})
    if not is_table and cells.unit == "line" and suffix_of(path) not in TABLES:
        # one session a line, which belongs to no user
        if odd := NO_SESSION.search(content.data):
            line = content.data.count(b"\n", 0, odd.start()) + 1
            remedy = f"say --skip-lines {line}" if odd[1] else "write a table with titles such as user,item,timestamp"
            remedy = f"run (printf 'user\\titems\\n'; cat '{path}') > '{path.stem}-table.tsv'" if odd[2] else remedy
            raise DataError(f"not item ids alone; {remedy}", path, line)
        sessions = split_lists([one_name(text) for _, text in content.lines()])
        return log_of_sessions(sessions, TRAIN, _numbered(content, len(sessions), dialect.account))
    table = to_table(cells, SCHEMA, dialect)
    return log_of_clicks(table.listed(ITEM, SESSION) if ITEMS in table else table, GAP)


NO_SESSION = re.compile(rb"(?m)^(?:([#%@]).*|.*\d\d:\d\d:\d\d.*|.* -2 *|([^\t \n]+\t[^\t\n]*[ ,;|].*))$")
"""Line of a comment, of a log, of SPMF's sequences with their ends, or of a user and items."""


def summarize(options: SessionsOptions, visits: Visits) -> DataSummary:
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
    )
