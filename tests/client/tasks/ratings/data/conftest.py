"""Small tables to try things on, and the folders of real data."""

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.reader import read_raters
from tests.support.raters import folder_of

Writer = Callable[..., Path]
"""(lines…, name=…) -> path of a text of these lines, gzipped if its name says so."""


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and give back the path."""

    def write(*lines: str, name: str = "ratings.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        content = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@pytest.fixture
def shared() -> Callable[[str], Ratings]:
    """Read one of the real data sets, once for all tests; skips where the shared data are absent."""
    return lambda name: _read(folder_of(name))


@pytest.fixture
def folder() -> Callable[[str], Path]:
    """Folder of one of the real data sets; skips where the shared data are absent."""
    return folder_of


@cache
def _read(folder: Path) -> Ratings:
    return read_raters(folder)
