"""Erasure of ended runs; `tests/contracts/test_door_exchange.py` tries it on a SuperLink that serves."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import HTTPException
from flwr.cli.build import build_fab_from_disk
from flwr.common.constant import NOOP_ACCOUNT_NAME, NOOP_FLWR_AID, SubStatus
from flwr.proto.control_pb2 import StartRunRequest
from flwr.proto.fab_pb2 import Fab
from flwr.server.superlink.linkstate.sql_linkstate import SqlLinkState
from flwr.supercore import sql_mixin
from flwr.supercore.auth.typing import AccountInfo
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.superlink.federation import NoOpFederationManager
from flwr.superlink.servicer.control import control_handlers

from deploy.superlink.guarded_superlink import erase_ended, set_up_database, start_runs_alone
from deploy.superlink.superlink import erase_database
from tests.support.superlinks import NOOP


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
    set_up_database()
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


@pytest.mark.filterwarnings("ignore:No path_separator:DeprecationWarning")  # of Flower's migrations
def test_the_app_of_a_run_that_starts_as_an_equal_one_ends_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_handlers, "start_run", control_handlers.start_run)  # restored after the test
    start_runs_alone(only=False)
    state = SqlLinkState(str(tmp_path / "superlink.sqlite"), NoOpFederationManager(), ObjectStoreFactory().store())
    state.initialize()
    done, create = set[int](), state.create_run

    def finish(task: int) -> None:
        assert state.claim_task(task)
        assert state.activate_task(task)
        assert state.finish_task(task, SubStatus.COMPLETED, "")

    def start() -> tuple[int, str]:
        request = StartRunRequest(fab=Fab(content=build_fab_from_disk(NOOP)))
        account = AccountInfo(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME)
        [run] = state.get_run_info(run_ids=[control_handlers.start_run(request, account, state, None).run_id])
        assert run.primary_task_id is not None
        return run.primary_task_id, run.fab_hash

    with ThreadPoolExecutor() as pool:

        def create_beside_erasure(*arguments: Any, **options: Any) -> int:
            """Let an erasure begin between the storage of the app and the row of its run."""
            erased.append(pool.submit(erase_ended, state, done))
            with pytest.raises(TimeoutError):
                erased[0].result(0.2)
            return create(*arguments, **options)

        erased: list[Any] = []
        task, app = start()
        finish(task)
        monkeypatch.setattr(state, "create_run", create_beside_erasure)
        task, again = start()
        erased[0].result(10)
    assert app == again
    assert state.get_fab(app) is not None
    finish(task)
    erase_ended(state, done)
    assert state.get_fab(app) is None


def test_a_server_of_one_run_refuses_a_second_with_one_line_as_flwr_run_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handlers: Any = control_handlers
    numbers = iter([ValueError("no app"), 1, 2])

    def start() -> int:
        if isinstance(number := next(numbers), Exception):
            raise number
        return number

    monkeypatch.setattr(control_handlers, "start_run", start)
    start_runs_alone(only=True)
    with pytest.raises(ValueError, match="no app"):
        handlers.start_run()
    assert handlers.start_run() == 1, "a start that failed is none"
    with pytest.raises(HTTPException, match="fedloom serve has one run") as refused:
        handlers.start_run()
    assert (refused.value.status_code, "\n" in refused.value.detail) == (409, False)
