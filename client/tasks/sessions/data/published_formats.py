"""Public click logs as published, recognised by their first line, and their preprocessing (§2.5).

Of Retailrocket's events the views are the clicks; LastFM's items are artists; Gowalla's, places.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from client.data.tables.formats import Content
from client.data.tables.reader import read_table
from client.data.tables.schema import Column, TableSchema
from client.data.tables.table import Table
from client.data.tables.titles import normalize_title
from client.data.tables.values import to_flags
from client.tasks.sessions.data.click_log import log_of_clicks
from client.tasks.sessions.data.log import Log
from client.tasks.sessions.data.preprocess import Recipe, active_users, prepare
from client.tasks.sessions.data.sessionize import DAY, EIGHT_HOURS, GAP, Cut, Seconds
from client.tasks.sessions.schema import ITEM, SESSION, TIME, USER
from common.arrays import Flags

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
