"""A ledger is found beside renamed, copied, moved or changed data, and its loss is detected."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from client.data.dataset import fingerprint
from client.privacy.claim import read_statements
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import find_all_ledgers, ledger_path, rollback_path
from client.privacy.ledger.roll_back import read_heads
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


def test_changed_data_keep_their_ledger(data: Path, tmp_path: Path) -> None:
    spend_on(data, tmp_path / "state")
    data.write_text(data.read_text() + "b,2\n")
    assert ledger_of(data, tmp_path / "state").spent() == pytest.approx(0.1)


@pytest.mark.parametrize("restored", [True, False])
def test_an_older_copy_is_noticed_also_where_the_data_changed(restored: bool, data: Path, tmp_path: Path) -> None:
    """Restored: data and ledger come from one backup, made before the data changed."""
    path = spend_on(data, tmp_path / "state")
    saved = {file: file.read_bytes() for file in (path, data)}
    if restored:
        data.write_text(data.read_text() + "b,2\n")
    newest = spend_on(data, tmp_path / "state", 2).read_bytes()
    path.write_bytes(saved[path])
    data.write_bytes(saved[data] + (b"" if restored else b"b,2\n"))
    with pytest.raises(LedgerError, match=r"older copy.*nothing was released; restore the newest copy"):
        ledger_of(data, tmp_path / "state")
    path.write_bytes(newest)
    assert ledger_of(data, tmp_path / "state").spent() == pytest.approx(0.2)


def test_another_ledger_is_noticed_also_where_the_data_changed(data: Path, tmp_path: Path) -> None:
    path = spend_on(data, tmp_path / "state")
    path.unlink()
    shutil.rmtree(f"{path}-kept")
    spend_on(data, tmp_path / "other")
    data.write_text(data.read_text() + "b,2\n")
    with pytest.raises(LedgerError, match="is another ledger"):
        ledger_of(data, tmp_path / "state")


def test_however_often_the_data_change_the_ledger_goes_on(data: Path, tmp_path: Path) -> None:
    for number in range(1, 6):
        data.write_text(data.read_text() + f"{number},1\n")
        spend_on(data, tmp_path / "state", number)
    assert len(list((tmp_path / "state" / "lineages").glob("*.json"))) == 5
    data.write_text("home,rule\na,1\n1,1\n")
    assert ledger_of(data, tmp_path / "state").spent() == pytest.approx(0.5), "data as they once were"


def test_ledgers_of_state_folders_are_at_their_newest_path_or_reported_as_gone(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "lineages"
    path = spend_on(data, tmp_path / "state")
    data.write_text(data.read_text() + "b,2\n")
    data.parent.rename(tmp_path / "moved")
    moved = spend_on(tmp_path / "moved" / "homes.csv", tmp_path / "state", 2)
    assert {seen.ledger for _, seen in read_heads([folder])} == {str(path), str(moved)}
    assert list(find_all_ledgers([folder])) == [moved]
    moved.unlink()
    [gone] = find_all_ledgers([folder])
    assert f"the privacy ledger {moved} of these data is gone, so nothing is released; put it back" in str(gone)


@pytest.mark.parametrize("way", [shutil.copy, shutil.move])
def test_a_copy_or_a_renamed_file_shares_it(way: Callable[[Path, Path], object], data: Path, tmp_path: Path) -> None:
    spend_on(data, tmp_path / "state")
    other = tmp_path / "elsewhere.csv"
    way(data, other)
    assert spend_on(other, tmp_path / "state", 2) == data.parent / ".homes.csv.fedloom-ledger"
    assert ledger_of(other, tmp_path / "state").spent() == pytest.approx(0.2)


def test_data_and_ledger_may_move_together(data: Path, tmp_path: Path) -> None:
    spend_on(data, tmp_path / "state")
    data.parent.rename(tmp_path / "moved")
    assert spend_on(tmp_path / "moved" / "homes.csv", tmp_path / "state", 2).parent == tmp_path / "moved"
    assert ledger_of(tmp_path / "moved" / "homes.csv", tmp_path / "state").spent() == pytest.approx(0.2)


@pytest.mark.parametrize("change", ["", "b,2\n"])
def test_a_ledger_that_vanished_is_noticed_also_where_the_data_changed(change: str, data: Path, tmp_path: Path) -> None:
    path = spend_on(data, tmp_path / "state")
    path.unlink()
    data.write_text(data.read_text() + change)
    with pytest.raises(LedgerError, match="is gone, so nothing is released; put it back"):
        ledger_of(data, tmp_path / "state")
    shutil.rmtree(f"{path}-kept")
    with pytest.raises(LedgerError, match="is gone, so nothing is released; put it back"):
        ledger_of(data, tmp_path / "state")
    assert not path.exists(), "no new one is made"


def test_data_behind_a_link_are_recognized_by_it(data: Path, tmp_path: Path) -> None:
    link, newer = tmp_path / "current.csv", tmp_path / "newer.csv"
    link.symlink_to(data)
    first = spend_on(link, tmp_path / "state")
    newer.write_text(data.read_text() + "b,2\n")
    link.unlink()
    link.symlink_to(newer)
    assert ledger_of(link, tmp_path / "state").spent() == pytest.approx(0.1)
    first.unlink()
    with pytest.raises(LedgerError, match="is gone, so nothing is released; put it back"):
        ledger_of(link, tmp_path / "state")


@pytest.mark.parametrize("elsewhere", [True, False])
def test_data_that_were_renamed_or_have_their_ledger_elsewhere_may_grow(
    elsewhere: bool, data: Path, tmp_path: Path
) -> None:
    if elsewhere:
        spend_on(data, tmp_path / "state", folder=tmp_path / "ledgers")
    else:
        spend_on(data, tmp_path / "state")
        data = data.rename(tmp_path / "other.csv")
    spend_on(data, tmp_path / "state", 2)
    data.write_text(data.read_text() + "b,2\n")
    assert ledger_of(data, tmp_path / "state").spent() == pytest.approx(0.2)
