"""Summary of sensors for their owner."""

from collections.abc import Sequence

import numpy as np

from client.data.summary import DataSummary, Dropped, find_repeated
from client.data.tables.cell_errors import escape
from client.data.tables.table import Table
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.data.split import split_series
from client.tasks.traffic.schema import SITE, TIME
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import duration
from common.text import count

MOST_REMARKS = 10
"""Sensors that are named in remarks."""


def summarize(options: TrafficOptions, sensors: Sensors, tables: Sequence[Table]) -> DataSummary:
    """Return readings of each sensor, and its windows to train on and held out."""
    step, window = sensors.vocabulary.step_seconds, options.history + options.horizon
    splits = [split_series(series, options, step) for series in sensors.units]
    train, test = (np.array([len(getattr(one, part)) for one in splits], np.int64) for part in ("train", "test"))
    remarks = [
        f"sensor '{escape(series.name)}' has {count(len(series.values), 'reading')} of {duration(step)}; "
        f"the first window needs {window}"
        for series, windows in zip(sensors.units, train.tolist(), strict=True)
        if not windows
    ]
    return DataSummary(
        record=("reading", "readings"),
        records=np.array([len(series.values) for series in sensors.units], np.int64),
        train=train,
        test=test,
        example=("window", "windows"),
        need=f"a window needs {options.history} + {options.horizon} readings (tasks.traffic.history and horizon)",
        totals={"variable": len(sensors.vocabulary.variables)},
        dropped=tuple(_dropped(sensors, tables)),
        remarks=(
            *remarks[:MOST_REMARKS],
            *[f"… and {len(remarks) - MOST_REMARKS} more"][: len(remarks) > MOST_REMARKS],
        ),
    )


def _dropped(sensors: Sensors, tables: Sequence[Table]) -> Sequence[Dropped]:
    """Return sites that were left out, and readings of a time that was read before."""
    found = []
    names = {series.name for series in sensors.units}
    sites = {name for table in tables if SITE in table for name in table.codes(SITE)[1]}
    if lost := sorted(sites - names):
        reason = "without a reading of every variable left out"
        found.append(Dropped(len(lost), ("site", "sites"), reason, f"site '{escape(lost[0])}'"))
    if all(SITE in table for table in tables):
        reason = "of a time already read (a row given twice, or the clock set back) were averaged with it"
        found += find_repeated(tables, (SITE, TIME), (SITE, TIME), ("reading", "readings"), reason)
    return found
