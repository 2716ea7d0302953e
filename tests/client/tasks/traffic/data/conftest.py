"""Small tables to try things on, and the folders of real data."""

import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors

ROOT = Path(__file__).parents[5]

Writer = Callable[..., Path]
"""(lines…, name=…) -> path of a text of these lines, gzipped if its name says so."""


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and give back the path."""

    def write(*lines: str, name: str = "road.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        content = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@pytest.fixture
def shared() -> Callable[[str], Sensors]:
    """Read one of the real data sets, once for all tests; skips where the shared data are absent."""
    return lambda name: _read(folder_of(name))


@pytest.fixture
def folder() -> Callable[[str], Path]:
    """Folder of one of the real data sets; skips where the shared data are absent."""
    return folder_of


def folder_of(name: str) -> Path:
    """Folder of one of the real data sets."""
    folder = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / name
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}; set FEDLOOM_SHARED_DATA to the folder of data sets")
    return folder


@cache
def _read(folder: Path) -> Sensors:
    return read_series(folder)
