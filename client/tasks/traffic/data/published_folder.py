"""Names of the files of published sets."""

import re
from pathlib import Path

from client.data.tables.formats import plain_name, tables_in
from client.tasks.traffic.schema import SUFFIXES

FILES = (
    r"originaldataset\.csv",
    r"volume_data\.csv",
    r"metro_interstate_traffic_volume\.csv",
    r"statedaily_.*\.csv",
    r".*\.vol",
)
"""Names of the published files, as patterns in lower case and without `.gz`.

VicRoads' Boroondara and ten sites, I-94, FHWA by state and day, FHWA's hourly station volumes."""


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    names = [plain_name(path) for path in tables_in(folder, SUFFIXES)]
    return any(re.fullmatch(pattern, name) for pattern in FILES for name in names)
