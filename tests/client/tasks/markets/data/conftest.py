"""Files of markets to try things on, and the real data."""

from pathlib import Path

import pytest

from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.reader import read_markets
from tests.support.files import Writer, folder_of, writer


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and give back the path."""
    return writer(tmp_path, "uk.csv")


@pytest.fixture(scope="session")
def xmarket() -> Markets:
    """XMarket's electronics, read once for all tests; skips where the shared data are absent."""
    return read_markets(folder_of("xmarket-electronics"))
