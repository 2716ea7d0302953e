"""Public click logs as published, recognized by their first line (algorithms.md §2.5)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from client.data.tables.files import TEST as HELD_OUT
from client.data.tables.files import Content, files_in, plain_name, split_files
from client.data.tables.reader import read_table
from client.data.tables.schema import Column, TableSchema, normalize_title
from client.data.tables.table import Table, to_flags
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
    log_of_clicks,
)
from client.tasks.sessions.data.visitors import ITEM, SESSION, TIME, USER
from common.arrays import Flags

DAY_SECONDS = 24 * 60 * 60


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
    log = _most_clicked(log, recipe.top).long_enough() if recipe.top else log.long_enough()
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


def _most_clicked(log: Log, top: int) -> Log:
    clicks = np.bincount(log.item, minlength=len(log.names))
    kept = np.argsort(-clicks, kind="stable")[:top]
    return log.where(np.isin(log.item, kept))


def _supported(log: Log, least: int) -> Log:
    item = log.item
    if (log.user != NOBODY).all():
        item = np.unique(np.stack([log.item, log.user]), axis=1)[0]
    return log.where(np.bincount(item, minlength=len(log.names))[log.item] >= least)


def _last_days_for_test(log: Log, recipe: Recipe) -> Log:
    day = log.time / DAY_SECONDS
    ends = np.floor(day) if recipe.by_date else day
    held = ends[log.last][_place(log)] > ends.max() - recipe.test_days
    return replace(log, part=np.where(held, TEST, log.part))


def _latest(log: Log, fraction: int) -> Log:
    """Keep the latest sessions; SR-GNN cuts expanded examples, here the session at the cut stays whole."""
    train = log.last & (log.part == TRAIN)
    sessions, examples = log.session[train], log.lengths[train] - 1
    latest_first = np.argsort(-log.time[train], kind="stable")
    before = np.cumsum(examples[latest_first]) - examples[latest_first]
    kept = sessions[latest_first][before < examples.sum() / fraction]
    return log.where((log.part != TRAIN) | np.isin(log.session, kept))


def _place(log: Log) -> np.ndarray:
    """Return the index of each click's session, C."""
    return np.unique(log.session, return_inverse=True)[1].ravel()


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


def read_original(content: Content, layout: Layout) -> Log:
    """Read and prepare a published log; users with no session left are left out.

    Raises:
        DataError: As of any click log, with line and column.
    """
    table = read_table(content, layout.schema)
    clicks = table.where(_is_click(table))
    log = log_of_clicks(clicks, layout.cut, _time(clicks))
    prepared = active_users(prepare(log, layout.recipe))
    skipped = len(table) - len(clicks)
    notes = (f"{skipped} rows that are no clicks on a known item skipped",) if skipped else ()
    kept = f"{len(prepared.item)} of {len(log.item)} clicks kept by the rules for this published set"
    return replace(prepared, notes=(*notes, kept))


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
