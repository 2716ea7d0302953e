"""Files of markets to try things on, and the real data."""

import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.reader import read_markets

ROOT = Path(__file__).parents[5]

Writer = Callable[..., Path]
"""(lines…, name=…) -> path of a text of these lines, gzipped if its name says so."""


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and give back the path."""

    def write(*lines: str, name: str = "uk.csv") -> Path:
        path = tmp_path / name
        content = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@pytest.fixture
def xmarket() -> Markets:
    """XMarket's electronics, read once for all tests; skips where the shared data are absent."""
    return _read()


@cache
def _read() -> Markets:
    folder = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / "xmarket-electronics"
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}; set FEDLOOM_SHARED_DATA to the folder of data sets")
    return read_markets(folder)
