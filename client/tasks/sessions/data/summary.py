"""Summary of sessions for their owner."""

from collections.abc import Iterator, Sequence

import numpy as np

from client.data.partition import floor_share
from client.data.summary import DataSummary, Dropped, locate
from client.data.tables.codes import Codes
from client.data.tables.table import Table
from client.tasks.sessions.data.click_log import order_clicks, split_items
from client.tasks.sessions.data.sessionize import GAP
from client.tasks.sessions.data.visitors import Visits
from client.tasks.sessions.schema import ITEMS
from common.arrays import Ints
from common.tasks.sessions.options import SessionsOptions


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
