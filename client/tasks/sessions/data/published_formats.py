"""Public click logs as their owners published them, known by their first line, and what §2.5 says to do with them.

Of Retailrocket's events the views are the clicks; LastFM's items are artists; Gowalla's, places.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from client.data.tables.reader import Table, read_columns
from client.data.tables.values import plainly, times
from client.tasks.sessions.data.click_log import log_of_clicks
from client.tasks.sessions.data.log import Log
from client.tasks.sessions.data.preprocess import Recipe, active_users, prepare
from client.tasks.sessions.data.sessionize import DAY, EIGHT_HOURS, GAP, Cut, Seconds

FILES = (
    r"yoochoose-clicks\.dat",
    r"train-item-views\.csv",
    r"(loc-)?gowalla_totalcheckins\.txt",
    r"userid-timestamp-artid-artname-traid-traname\.tsv",
    r"events\.csv",
)
"""What the files are called, as patterns in lower case."""

ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT")


@dataclass(frozen=True)
class Layout:
    """One published log.

    Args:
        titles: Of its columns: the header, plainly written, or, where it has none, names that we give.
        recipe: What §2.5 says to keep.
        headed: Whether it has a header.
        cut: Where a session ends, if it has no sessions.
        ignored: Columns that are not what they look like: Diginetica's users are known for few sessions.
    """

    titles: tuple[str, ...]
    recipe: Recipe
    headed: bool = False
    cut: Cut = GAP
    ignored: tuple[str, ...] = ()


YOOCHOOSE = Layout(("session", "timestamp", "item", "category"), Recipe(least=5, test_days=1, fraction=64))
"""1/64."""
GOWALLA = Layout(("user", "timestamp", "latitude", "longitude", "item"), Recipe(top=3_000, longest=20), cut=DAY)
LASTFM = Layout(
    ("user", "timestamp", "item", "artist", "trackid", "track"), Recipe(top=40_000, longest=20), cut=EIGHT_HOURS
)
DIGINETICA = Layout(
    ("sessionid", "userid", "itemid", "timeframe", "eventdate"),
    Recipe(least=5, test_days=7, by_date=True),
    headed=True,
    ignored=("userid",),
)
RETAILROCKET = Layout(
    ("timestamp", "visitorid", "event", "itemid", "transactionid"), Recipe(least=5, longest=20), headed=True
)
LAYOUTS = (YOOCHOOSE, GOWALLA, LASTFM, DIGINETICA, RETAILROCKET)


def layout_of(cells: Sequence[str]) -> Layout | None:
    """Which published log has this first line, if any."""
    plain = tuple(map(plainly, cells))
    begins_with_data = len(cells) > 1 and ISO_TIME.match(cells[1])
    fits = (k for k in LAYOUTS if (plain == k.titles if k.headed else begins_with_data and len(cells) == len(k.titles)))
    return next(fits, None)


def read_original(path: Path, layout: Layout, delimiter: str) -> Log:
    """Read and prepare a published log; users with no session left are left out.

    Raises:
        DataError: As of any click log, with line and column.
    """
    table = read_columns(path, delimiter, () if layout.headed else layout.titles)
    table, skipped = _clicks(_without(table, layout.ignored))
    log = log_of_clicks(table, layout.cut, _time(table))
    prepared = active_users(prepare(log, layout.recipe))
    notes = (f"{skipped} rows that are no clicks on a known item skipped",) if skipped else ()
    kept = f"{len(prepared.item)} of {len(log.item)} clicks kept by the rules for this published set"
    return replace(prepared, notes=(*notes, kept))


def _without(table: Table, ignored: tuple[str, ...]) -> Table:
    kept = [k for k, title in enumerate(table.titles) if plainly(title) not in ignored]
    return replace(table, titles=[table.titles[k] for k in kept], columns=[table.columns[k] for k in kept])


def _clicks(table: Table) -> tuple[Table, int]:
    """Retailrocket's views, LastFM's plays of artists that have an id; and the number of other rows."""
    kept = np.ones(len(table), bool)
    if "event" in table.titles:
        kept = np.array([event == "view" for event in table.column("event").to_pylist()])
    if "artist" in table.titles:
        kept = table.filled("item")
    return (table if kept.all() else table.where(kept)), int((~kept).sum())


def _time(table: Table) -> Seconds | None:
    """Diginetica's, a day and milliseconds since the session began; None where one column is the time."""
    if "timeframe" not in table.titles:
        return None
    return times(table, "eventdate") + times(table, "timeframe") / 1000
