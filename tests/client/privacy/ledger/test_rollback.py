"""Roll-back record: it detects older copies, falls behind harmlessly, and is overwritten whole."""

import shutil
from pathlib import Path

import pytest

from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.roll_back import LedgerHead, RollbackRecord
from common.privacy.accounts import Zcdp
from tests.support.ledgers import opened, record_of, refuses, spend


def test_an_older_copy_is_noticed_and_the_newest_goes_on(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    ledger = opened(folder)
    spend(ledger, 3, 5)
    ledger.close()
    (folder / "ledger").rename(folder / "newest")
    (folder / "older").rename(folder / "ledger")
    refuses(folder, "older copy")
    (folder / "newest").rename(folder / "ledger")
    assert opened(folder).spent() == pytest.approx(0.05)


def test_an_older_copy_that_went_another_way_is_noticed(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    ledger = opened(folder)
    spend(ledger, 3, 4)
    ledger.close()
    (folder / "older").rename(folder / "ledger")
    other = Ledger(folder / "ledger", "client", Zcdp(), 10.0, 1e-5, RollbackRecord(folder / "elsewhere.json"))
    spend(other, 10, 15)
    other.close()
    refuses(folder, "older copy")


def test_a_log_that_was_lost_is_noticed(folder: Path) -> None:
    """The write-ahead log holds the newest rows until the ledger is closed."""
    ledger = opened(folder)
    spend(ledger, 3, 5)
    for name in ("ledger", "ledger-wal", "state/record.json"):
        shutil.copy(folder / name, folder / f"{Path(name).name}-copy")
    ledger.close()
    crashed = folder / "crashed"
    (crashed / "state").mkdir(parents=True)
    shutil.copy(folder / "ledger-copy", crashed / "ledger")
    shutil.copy(folder / "record.json-copy", crashed / "state" / "record.json")
    refuses(crashed, "lacks releases")
    shutil.copy(folder / "ledger-wal-copy", crashed / "ledger-wal")
    assert opened(crashed).spent() == pytest.approx(0.05)


def test_a_record_that_fell_behind_catches_up(folder: Path) -> None:
    record = record_of(folder)
    before = record.read()
    ledger = opened(folder)
    spend(ledger, 3, 5)
    assert before is not None
    record.write(before)
    assert opened(folder).spent() == pytest.approx(0.05)
    head = record.read()
    assert head is not None
    assert (head.sequence, head.lineage) == (5, "lineage")
    assert dict(head.spent) == {"client": pytest.approx(0.05)}


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"lineage": 1}', b"\xff\xfe"])
def test_a_damaged_record_is_an_error(content: bytes, folder: Path) -> None:
    (folder / "state" / "record.json").write_bytes(content)
    refuses(folder, "cannot read the roll-back record")


def test_a_record_is_overwritten_in_place_whole(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    assert record.read() is None
    for head in (LedgerHead("l", "/a", 10**9, "f" * 64, (("client", 1 / 3),)), LedgerHead("l", "/b")):
        record.write(head)
        assert (record.read(), record.path.stat().st_size) == (head, 2048)
    assert record.path.stat().st_mode & 0o777 == 0o600
    long = LedgerHead("l", "/" + "x" * 4000)
    record.write(long)
    assert record.read() == long
