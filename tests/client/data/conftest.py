"""Small files to try the table engine on."""

from collections.abc import Callable
from pathlib import Path

import pytest

Writer = Callable[..., Path]
"""(lines…, name=…) -> path of a text of these lines."""


@pytest.fixture
def text(tmp_path: Path) -> Writer:
    """Write lines and return the path."""

    def write(*lines: str, name: str = "a.csv") -> Path:
        path = tmp_path / name
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return path

    return write
