"""Small sessions to try things on, and the folders of real data."""

import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Visits

ROOT = Path(__file__).parents[5]

Writer = Callable[..., Path]
"""(lines…, name=…) -> path of a text of these lines, gzipped if its name says so."""


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and give back the path."""

    def write(*lines: str, name: str = "sessions.txt") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        content = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@pytest.fixture
def shared() -> Callable[[str], Visits]:
    """Read one of the real data sets, once for all tests; skips where the shared data are absent."""
    return _read


@cache
def _read(name: str) -> Visits:
    folder = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / name
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}; set FEDLOOM_SHARED_DATA to the folder of data sets")
    return read_visitors(folder)
