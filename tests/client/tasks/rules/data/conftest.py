"""Small homes to try things on, and the folder of real data."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from client.tasks.rules.data.homes import COLUMNS

ROOT = Path(__file__).parents[5]

TableWriter = Callable[..., Path]
"""(rows…, header=…, name=…) -> path of a CSV of these lines, gzipped if its name says so."""


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    """Write CSV lines under a header and give back the path."""

    def write(*rows: str, header: str = ",".join(COLUMNS), name: str = "homes.csv") -> Path:
        path = tmp_path / name
        content = ("\n".join((header, *rows)) + "\n").encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@pytest.fixture
def recrules() -> Path:
    """Return the IFTTT rules; skip where the shared data are absent."""
    folder = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / "ifttt-recrules"
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}; set FEDLOOM_SHARED_DATA to the folder of data sets")
    return folder
