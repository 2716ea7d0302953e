"""Small sessions to try things on, and the folders of real data."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Visits
from tests.support.files import Writer, folder_of, writer


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and give back the path."""
    return writer(tmp_path, "sessions.txt")


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Visits]:
    """Read one of the real data sets, once for all tests; skips where the shared data are absent."""
    return cache(lambda name: read_visitors(folder_of(name)))
