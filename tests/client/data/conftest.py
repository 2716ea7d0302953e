"""Small files to try the table engine on."""

from pathlib import Path

import pytest

from tests.support.files import Writer, writer


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and return the path."""
    return writer(tmp_path, "a.csv")
