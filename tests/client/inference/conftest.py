"""A sensor's table."""

from pathlib import Path

import pytest

from tests.support.hourly import write_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return the table of two sensors."""
    return write_table(tmp_path)
