"""Stored files carry the version of their format: files of format 1 are read, files of a newer fedloom are refused by name.

`tests/fixtures/format-1` has files of the last commit without versions (8840eb61): a run with a checkpoint and its origin, a
client's state, a hub's states, a ledger and an invitation. `tests/fixtures/newest` has files of the newest formats where these
are others, or came later.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save, save_file

from client.hub.state import CLIENTS, StateBlocks
from client.owner.consent import consents_in
from client.privacy.ledger.database import LedgerDatabase, entries
from client.privacy.ledger.ledger import Ledger
from client.state import ClientMemory, DiskStore
from client.training.snapshot import ClientsState, Manifest, SnapshotFolder
from common.errors import FedloomError, NewerFormatError, StateError
from common.files import FORMAT, check_format
from common.privacy.accounts import Zcdp
from deploy.federation.runs import Origin, origin_of, origin_to_json
from deploy.keys.invitation import read_invitation
from server.record.folder import Checkpoint, RunDirectory, load_tensors

FIRST = Path(__file__).parents[1] / "fixtures" / "format-1"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    shutil.copytree(FIRST, tmp_path / "stored")
    return tmp_path / "stored"


def read_ledger(path: Path) -> int:
    """Return the number of a ledger's releases."""
    database = LedgerDatabase(path)
    try:
        with database.reading() as db:
            return len([*entries(db)])
    finally:
        database.close()


def read_checkpoint(folder: Path) -> Checkpoint:
    checkpoint = RunDirectory(folder, "run").checkpoints.load_latest()
    assert checkpoint
    return checkpoint


def read_clients(folder: Path) -> tuple[Manifest, ClientsState]:
    return SnapshotFolder(folder / "clients").read(Manifest("run", 1, "", ""))


def test_files_of_the_first_format_are_read(stored: Path) -> None:
    checkpoint = read_checkpoint(stored)
    assert (checkpoint.round, checkpoint.seed, checkpoint.state) == (2, 7, {"best": 0.5})
    np.testing.assert_array_equal(checkpoint.groups["model"]["w"], [0, 1, 2])
    assert origin_of(stored / "run") == Origin("simulate", "demo", 4, {"client-0": "north"})
    hosted = StateBlocks(stored / "hosted").load("run", "c0/data")
    for memory in (DiskStore(stored / "state").load("run"), hosted):
        assert memory.round == 2
        assert memory.groups["control"]["w"].tolist() == [2, 2, 2]
    assert read_ledger(stored / "ledger.sqlite") == 1
    with pytest.raises(FedloomError, match="of version 1, which lacks the terms of the run; ask the server's owner"):
        read_invitation(stored / "invite.fedloom")


def test_an_invitation_of_format_2_has_its_check_code() -> None:
    """Owners agreed to its terms by this code, and it names no client."""
    invitation = read_invitation(FIRST.with_name("format-2") / "invite.fedloom")
    assert (invitation.code, invitation.token) == ("7NKE-B2RQ-QLQX-BQOS", "")


def test_files_of_the_newest_formats_are_read(tmp_path: Path) -> None:
    """A change of a format must read them, or have a new version that does."""
    stored = tmp_path / "stored"
    shutil.copytree(FIRST.with_name("newest"), stored)
    invitation = read_invitation(stored / "invite.fedloom")
    assert (invitation.code, invitation.client, invitation.token) == ("M443-MO3D-FNJC-4LKI", "ann", "secret")
    [(_, consent)] = consents_in(stored)
    assert consent.hash == "f5546fd5b824953a3b13aa6aa172a2dbd084f8b11548311bab1a24a8cc1b6102"
    ledger = Ledger(stored / "ledger.sqlite", "client", Zcdp(), 20.0, 1e-5)
    assert [(one.terms.trust, one.terms.contract) for one in ledger.entries()] == [
        ("local", ""),
        ("helpers 2 50", consent.hash),
    ]
    assert [(one.before, one.epsilon) for one in ledger.claim().raises] == [(10.0, 20.0)]
    ledger.close()
    manifest, state = SnapshotFolder(stored / "clients").read(Manifest("run", 2, "", ""))
    [shard] = state.shards
    memory = StateBlocks(stored / "hosted").load("run", "c0/data")
    assert (manifest.releases, shard.rounds, memory.round) == (1, (2,), 2)
    assert shard.groups["control"]["w"].tolist() == [memory.groups["control"]["w"].tolist()] == [[2, 2, 2]]


def newer_tensors(path: Path) -> None:
    arrays, about = load_tensors(path)
    save_file({**arrays}, path, {**about, FORMAT: "9"})


def newer_block(path: Path) -> None:
    about = np.frombuffer(json.dumps({FORMAT: 9, CLIENTS: []}).encode(), np.uint8)
    path.write_bytes(save({**load(path.read_bytes()), CLIENTS: about}))


def newer_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")


def newer_json(path: Path, key: str = FORMAT) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), key: 9, "later": True}))


STORED: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], object]]] = {
    "checkpoint": ("run/checkpoints/round-000002.safetensors", newer_tensors, read_checkpoint),
    "origin": ("run/origin.json", newer_json, lambda folder: origin_of(folder / "run")),
    "state": (
        "state/run/memory.safetensors",
        lambda path: save_file({}, path, {FORMAT: "9"}),
        lambda folder: DiskStore(folder / "state").load("run"),
    ),
    "hub": (
        "hosted/run/000000001.safetensors",
        newer_block,
        lambda folder: StateBlocks(folder / "hosted").load("run", "c0/data"),
    ),
    "ledger": ("ledger.sqlite", newer_database, lambda folder: read_ledger(folder / "ledger.sqlite")),
    "invitation": (
        "invite.fedloom",
        lambda path: newer_json(path, "fedloom_invite"),
        lambda folder: read_invitation(folder / "invite.fedloom"),
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_a_file_of_a_newer_program_is_refused_by_name_and_left_as_it_is(name: str, stored: Path) -> None:
    path, change, read = STORED[name]
    change(stored / path)
    before = (stored / path).read_bytes()
    with pytest.raises(
        FedloomError, match=r"by a newer fedloom \(format 9; .* reads up to .\); update fedloom"
    ) as raised:
        read(stored)
    assert path.rpartition("/")[2] in str(raised.value)
    assert (stored / path).read_bytes() == before


def test_an_older_checkpoint_does_not_stand_in_for_one_of_a_newer_program(stored: Path) -> None:
    checkpoints = RunDirectory(stored, "run").checkpoints
    checkpoints.save(Checkpoint(3, 7, {"model": {"w": np.zeros(3, np.float32)}}), 2)
    newer_tensors(stored / "run" / "checkpoints" / "round-000003.safetensors")
    with pytest.raises(NewerFormatError, match="round-000003"):
        read_checkpoint(stored)


def test_a_snapshot_of_simulated_clients_names_its_format(tmp_path: Path) -> None:
    SnapshotFolder(tmp_path / "clients").write(Manifest("run", 1, "", ""), ClientsState())
    assert read_clients(tmp_path)[0].version == 1
    newer_json(tmp_path / "clients" / "1" / "manifest.json", "version")
    with pytest.raises(NewerFormatError, match="snapshot of the clients was written by a newer fedloom"):
        read_clients(tmp_path)


def test_new_files_carry_their_version(tmp_path: Path) -> None:
    memory = ClientMemory(1, {"control": {"w": torch.ones(2)}})
    DiskStore(tmp_path).save("run", memory)
    blocks = StateBlocks(tmp_path / "hosted")
    blocks.save("run", "c0/data", memory)
    blocks.flush()
    assert json.loads(origin_to_json(Origin("up", "demo", 2)))[FORMAT] == 1
    assert FORMAT.encode() in (tmp_path / "run" / "memory.safetensors").read_bytes()
    assert FORMAT.encode() in (tmp_path / "hosted" / "run" / "000000001.safetensors").read_bytes()
    assert StateBlocks(tmp_path / "hosted").load("run", "c0/data").round == 1


@pytest.mark.parametrize("found", ["", "0", "-1", "x", "²", None, 1.5])
def test_a_version_is_a_positive_number(found: object) -> None:
    with pytest.raises(StateError, match="its format is"):
        check_format("file", found)
