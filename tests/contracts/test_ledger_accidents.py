"""Accidents with ledgers on disks: each is refused with both heads, or stands in every statement as not covered.

A client has files as `fedloom join` keeps them, and the server its folder `nodes/`. Before an accident the client made one
release, was backed up, and made two more.
"""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from flwr.app import Message

from client.app import open_session
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.ledger import Ledger
from client.session import Session
from client.settings import ClientSettings
from client.tasks.rules.data.homes import write_homes
from common.config.run import RunConfig
from common.errors import QuorumError
from common.options import Scalar
from common.privacy.claims import COPIES
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.record.result import Result
from tests.contracts.test_ledgers_in_runs import keyed_run
from tests.support.hubs import NodeGrid, direct
from tests.support.owners import noisy
from tests.support.toys import toy_dataset

DATA, STATE, LEDGER = "homes.csv", "state", ".homes.csv.fedloom-ledger"
SAME, NEW = 1, 2  # keys of test_node_directory

Accident = Callable[[Path, Path, Path], None]
"""Makes the folder after the accident from those before it: the newest one and its backup."""


def copy_the_data(newest: Path, backup: Path, after: Path) -> None:
    shutil.copy(newest / DATA, after)


def restore_everything(newest: Path, backup: Path, after: Path) -> None:
    shutil.copytree(backup, after, dirs_exist_ok=True)


def restore_the_ledger(newest: Path, backup: Path, after: Path) -> None:
    for name in (DATA, LEDGER):
        shutil.copy(backup / name, after)


def delete_the_last_row(newest: Path, backup: Path, after: Path) -> None:
    for name in (DATA, LEDGER):
        shutil.copy(newest / name, after)
    db = sqlite3.connect(after / LEDGER)
    db.execute("DELETE FROM releases WHERE sequence = 3")
    db.commit()
    db.close()


ACCIDENTS: dict[str, tuple[Accident, int, str]] = {
    "copied data with fresh state": (
        copy_the_data,
        0,
        "ledger {new} is new, and this key had ledger {old} with 3 rows",
    ),
    "restored backup": (restore_everything, 1, "ledger {old} has 1 rows and had 3; it is an older copy"),
    "older ledger with fresh state": (restore_the_ledger, 1, "ledger {old} has 1 rows and had 3; it is an older copy"),
    "last row deleted with fresh state": (delete_the_last_row, 2, "ledger {old} has 2 rows and had 3; it is an older"),
}
"""The accident, the rows that the client's ledger then has, and the refusal under the same key."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a server's folder, with the client's newest files and their backup."""
    folder = tmp_path_factory.mktemp("before")
    (newest := folder / "newest").mkdir()
    write_homes(newest / DATA, toy_dataset(2))
    for name, rounds in (("zero", 1), ("one", 2)):
        session = client(newest)
        assert serve(folder, session, name, rounds).status == "completed"
        ledger(folder, session).close()
        if name == "zero":
            shutil.copytree(newest, folder / "backup")
    return folder


@pytest.fixture
def newest(before: Path, tmp_path: Path) -> Path:
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    return tmp_path / "newest"


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_accident_under_the_same_key_is_refused_with_both_heads(accident: str, newest: Path, tmp_path: Path) -> None:
    session, old = start_after(accident, newest, tmp_path), lineage(newest)
    with pytest.raises(QuorumError) as refused:
        serve(tmp_path, session, "again")
    assert ACCIDENTS[accident][2].format(new=ledger(tmp_path, session).head().lineage[:8], old=old) in str(
        refused.value
    )
    assert ledger(tmp_path, session).head().sequence == ACCIDENTS[accident][1], "nothing was released"


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_accident_under_a_key_that_never_enrolled_is_not_covered(
    accident: str, newest: Path, tmp_path: Path
) -> None:
    session = start_after(accident, newest, tmp_path, "bob")
    result = serve(tmp_path, session, "again", key=NEW)
    assert ledger(tmp_path, session).head().sequence == ACCIDENTS[accident][1] + 2, "the lost releases are not counted"
    assert_not_covered(result, ledger(tmp_path, session))


def test_a_backup_of_before_the_server_received_the_reply_is_not_covered(newest: Path, tmp_path: Path) -> None:
    shutil.copytree(newest, tmp_path / "copy")
    lost = client(newest)

    def respond(message: Message) -> Message | None:
        reply = direct(lost)(message)
        return None if message.metadata.message_type == TRAIN else reply

    with pytest.raises(QuorumError):
        keyed_run(NodeGrid({1: respond}), configured(tmp_path, "lost", federation__deadline=1.0), tmp_path, {1: SAME})
    assert ledger(tmp_path, lost).head().sequence == 4
    ledger(tmp_path, lost).close()

    session = client(tmp_path / "copy")
    result = serve(tmp_path, session, "again")
    assert ledger(tmp_path, session).head().sequence == 3 + 2, "the lost release is not counted"
    assert_not_covered(result, ledger(tmp_path, session))


def client(folder: Path, name: str = "ann") -> Session:
    """Start a client anew on the files in a folder."""
    return open_session.__wrapped__(ClientSettings(data=str(folder / DATA), name=name, state_dir=folder / STATE))


def configured(folder: Path, name: str, rounds: int = 2, **options: Scalar) -> RunConfig:
    return noisy(folder, "fedavg", rounds=rounds, **{"privacy.accept-noise": True}, **options).model_copy(
        update={"run_id": name}
    )


def serve(folder: Path, session: Session, name: str, rounds: int = 2, key: int = SAME) -> Result:
    return keyed_run(InProcessGrid({1: session}, 1), configured(folder, name, rounds), folder, {1: key})


def start_after(accident: str, newest: Path, folder: Path, name: str = "ann") -> Session:
    """Start the client on what an accident left of its files."""
    (after := folder / "after").mkdir()
    ACCIDENTS[accident][0](newest, folder / "backup", after)
    return client(after, name)


def ledger(folder: Path, session: Session) -> Ledger:
    return session.releaser.budget.ledger(configured(folder, "any").privacy)


def lineage(folder: Path) -> str:
    database = LedgerDatabase(folder / LEDGER)
    database.close()
    return database.lineage[:8]


def assert_not_covered(result: Result, ledger: Ledger) -> None:
    assert result.status == "completed"
    assert COPIES in result.privacy.uncovered, "the server's statement"
    assert COPIES in ledger.claim().uncovered, "the client's statement"
