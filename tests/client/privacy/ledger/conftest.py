"""Data and ledgers for tests of the ledger."""

from pathlib import Path

import pytest

from client.privacy.ledger.database import MEMORY
from client.privacy.ledger.ledger import Ledger
from common.privacy.accounts import Zcdp
from tests.support.ledgers import DELTA, EPSILON, opened, spend


@pytest.fixture(params=["disk", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    """Return an empty ledger."""
    return opened(tmp_path) if request.param == "disk" else Ledger(MEMORY, "client", Zcdp(), EPSILON, DELTA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a closed ledger of three releases."""
    ledger = opened(tmp_path)
    spend(ledger, 0, 3)
    ledger.close()
    return tmp_path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a file of data in a folder of its own."""
    path = tmp_path / "data" / "homes.csv"
    path.parent.mkdir()
    path.write_text("home,rule\na,1\n")
    return path
