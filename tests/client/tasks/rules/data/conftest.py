"""Small homes to try things on, and the folder of real data."""

from pathlib import Path

import pytest

from client.tasks.rules.data.homes import COLUMNS
from tests.support.files import Writer, folder_of, writer


@pytest.fixture
def table(tmp_path: Path) -> Writer:
    """Write CSV lines under a header and give back the path."""
    write = writer(tmp_path, "homes.csv")
    usual = ",".join(COLUMNS)
    return lambda *rows, header=usual, **name: write(header, *rows, **name)


@pytest.fixture
def recrules() -> Path:
    """Return the IFTTT rules; skip where the shared data are absent."""
    return folder_of("ifttt-recrules")
