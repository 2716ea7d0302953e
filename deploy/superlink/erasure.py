"""Erasure of ended runs from the database of a SuperLink that outlives them.

Flower deletes the messages of an ended run when somebody next asks for that run, and keeps its app. Here both go when the run
ends, with the app's installed copy, and the write-ahead log is emptied.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from flwr.common.config import get_project_dir
from flwr.common.constant import Status
from flwr.server.superlink.linkstate.sql_linkstate import SqlLinkState
from flwr.supercore import sql_mixin
from flwr.supercore.state.schema.corestate_models import Fab
from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError

SEARCH_SECONDS = 0.5
"""Seconds between two searches for ended runs."""

log = logging.getLogger("flwr")


def overwrite_deleted() -> None:
    """Let SQLite overwrite what Flower deletes with zeros."""
    module: Any = sql_mixin
    module.SQLITE_PRAGMAS += (("secure_delete", "ON"),)


@asynccontextmanager
async def erasing(superlink: FastAPI) -> AsyncIterator[None]:
    """Erase runs of a SuperLink as they end; one without a database has nothing to erase."""
    state = superlink.state.linkstate_factory.state()
    if not isinstance(state, SqlLinkState):
        yield
        return
    watch = asyncio.create_task(_watch(RunErasure(state)))
    try:
        yield
    finally:
        watch.cancel()


async def _watch(erasure: "RunErasure") -> None:
    while True:
        try:
            await asyncio.to_thread(erasure.erase_ended)
        except (SQLAlchemyError, OSError) as error:  # a busy database or a full disk; the next search tries again
            log.warning("ended runs are not erased yet: %s", type(error).__name__)
        await asyncio.sleep(SEARCH_SECONDS)


class RunErasure:
    """Erasure of ended runs.

    Args:
        state: State of the SuperLink.
    """

    def __init__(self, state: SqlLinkState) -> None:
        self._state = state
        self._erased: set[int] = set()

    def erase_ended(self) -> None:
        """Erase the messages, objects and app of each run that has ended since the last call."""
        runs = self._state.get_run_info()
        used = {run.fab_hash for run in runs if run.status.status != Status.FINISHED}
        ended = [run for run in runs if run.status.status == Status.FINISHED and run.run_id not in self._erased]
        if not ended:
            return
        for run in ended:
            self._state.cleanup_run(run.run_id)
            if run.fab_hash not in used:
                with self._state.session() as session:
                    session.execute(delete(Fab).where(Fab.fab_hash == run.fab_hash))
                shutil.rmtree(get_project_dir(run.fab_id, run.fab_version, run.fab_hash), ignore_errors=True)
        if not self._state.query("PRAGMA wal_checkpoint(TRUNCATE)")[0]["busy"]:
            self._erased |= {run.run_id for run in ended}
