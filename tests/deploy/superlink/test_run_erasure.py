"""Erasure of ended runs; `tests/contracts/test_fleet_exchange.py` tries it on a SuperLink that serves."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flwr.supercore import sql_mixin

from deploy.superlink.guarded_superlink import overwrite_deleted
from deploy.superlink.superlink import erase_database


def overwrites(database: Path) -> bool:
    """Return True if a connection as Flower opens it overwrites what it deletes, also with another default of SQLite."""
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA secure_delete = OFF")
        sql_mixin._set_sqlite_pragmas(db, None)
        return bool(db.execute("PRAGMA secure_delete").fetchone()[0])


def test_flower_s_connections_overwrite_what_they_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = sql_mixin
    monkeypatch.setattr(module, "SQLITE_PRAGMAS", before := module.SQLITE_PRAGMAS)
    assert not overwrites(tmp_path / "before.sqlite")
    overwrite_deleted()
    assert module.SQLITE_PRAGMAS[: len(before)] == before
    assert overwrites(tmp_path / "after.sqlite")


def test_a_database_goes_with_its_log(tmp_path: Path) -> None:
    database, kept = tmp_path / "superlink.sqlite", tmp_path / "superlink.log"
    kept.touch()
    db = sqlite3.connect(database)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE numbers (number)")
    assert len([*tmp_path.glob("superlink.sqlite*")]) == 3
    log = open(f"{database}-wal", "rb")  # noqa: SIM115 - still open after the file is gone
    erase_database(database)
    with log:
        assert log.read() == b""
    db.close()
    assert [*tmp_path.iterdir()] == [kept]
    erase_database(database)
