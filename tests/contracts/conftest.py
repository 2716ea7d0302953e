"""Folders of doors, for all contracts on them."""

from pathlib import Path

import pytest

from tests.support.doors import DoorHome


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> DoorHome:
    return DoorHome(tmp_path_factory.mktemp("home"))


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return tmp_path / "nodes"
