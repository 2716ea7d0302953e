"""A ledger is found again under another client name, key or state folder."""

import shutil
from pathlib import Path

import pytest

from client.data.dataset import fingerprint
from client.privacy.claim import read_statements
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import ledger_path, rollback_path
from common.errors import LedgerError
from common.privacy.mechanisms import Gaussian
from tests.support.ledgers import ledger_of, spend_on


def test_it_lies_beside_a_file_and_inside_a_folder(data: Path, tmp_path: Path) -> None:
    assert spend_on(data, tmp_path / "state") == data.parent / ".homes.csv.fedloom-ledger"
    before = fingerprint(str(data.parent), (0, 1), 0)
    assert spend_on(data.parent, tmp_path / "state") == data.parent / ".fedloom" / "ledger"
    shutil.rmtree(data.parent / ".fedloom")
    assert fingerprint(str(data.parent), (0, 1), 0) == before, "a ledger inside a folder does not change its data"


def test_that_of_made_data_and_of_read_only_disks_lies_elsewhere(data: Path, tmp_path: Path) -> None:
    path = spend_on("demo:0-5", tmp_path / "state")
    assert path.parent == tmp_path / "state" / "lineages"
    assert ledger_of("demo:0-5", tmp_path / "state").spent() == pytest.approx(0.1)
    assert ledger_of("demo:5-9", tmp_path / "state").spent() == 0
    assert spend_on(data, tmp_path / "state", folder=tmp_path / "ledgers").parent == tmp_path / "ledgers"
    assert ledger_of(data, tmp_path / "state").spent() == pytest.approx(0.1), "the roll-back record has the path"


def test_a_new_state_folder_finds_it(data: Path, tmp_path: Path) -> None:
    spend_on(data, tmp_path / "state")
    assert ledger_of(data, tmp_path / "other").spent() == pytest.approx(0.1)


def test_a_link_to_the_data_is_the_data(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(data)
    assert spend_on(tmp_path / "link.csv", tmp_path / "state") == data.parent / ".homes.csv.fedloom-ledger"


def test_another_ledger_in_its_place_is_noticed(data: Path, tmp_path: Path) -> None:
    path = spend_on(data, tmp_path / "state")
    path.rename(tmp_path / "moved")
    shutil.rmtree(f"{path}-kept")
    spend_on(data, tmp_path / "other")
    with pytest.raises(LedgerError, match="is another ledger"):
        ledger_of(data, tmp_path / "state")
    (tmp_path / "moved").rename(path)
    assert ledger_of(data, tmp_path / "state").spent() == pytest.approx(0.1)


def test_where_no_ledger_can_be_made_nothing_starts(data: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(LedgerError, match="cannot create the privacy ledger"):
        ledger_of(data, tmp_path / "state", folder=blocked)


def test_its_statement_names_runs_and_waste(data: Path, tmp_path: Path) -> None:
    ledger = ledger_of(data, tmp_path / "state")
    terms = ledger.terms(Gaussian(0.1, 1.0))
    ledger.release(Slot("first", 1), terms, lambda: b"noise")
    ledger.charge(Slot("second", 1), terms)
    ledger.release(Slot("second", 1), terms, lambda: b"noise")
    [statement] = read_statements(ledger.path)
    assert statement.claim == ledger.claim()
    assert [(run.run, run.releases, run.wasted, round(run.spent, 9)) for run in statement.runs] == [
        ("first", 1, 0, 0.1),
        ("second", 2, 1, 0.2),
    ]


def test_paths_are_by_fingerprint_or_name(tmp_path: Path, data: Path) -> None:
    assert rollback_path(tmp_path, "ab").name == "ab.json"
    assert ledger_path(f"{data}::test.csv", tmp_path, "ab") == ledger_path(str(data), tmp_path, "ab")
