"""State of clients in memory, through the files of a snapshot."""

from pathlib import Path

import pytest
import torch

from client.state import ClientMemory, MemoryStore, StackedRow
from client.training import snapshot as shard
from client.training.snapshot import Manifest, SnapshotFolder, dump_stores, load_stores
from client.training.stacks import Tensors

RUN = "r"


def copied(stores: list[MemoryStore], folder: Path) -> list[MemoryStore]:
    """Return new stores with the state of a snapshot of these."""
    manifest = Manifest(RUN, 2, "model", "layout")
    SnapshotFolder(folder).write(manifest, dump_stores(stores, RUN))
    again = [MemoryStore() for _ in stores]
    load_stores(SnapshotFolder(folder).read(manifest)[1], again, RUN)
    return again


def assert_equal(stores: list[MemoryStore], others: list[MemoryStore]) -> None:
    for one, other in zip(stores, others, strict=True):
        before, after = one.load(RUN), other.load(RUN)
        assert (before.round, {*before.groups}) == (after.round, {*after.groups})
        for group, named in before.groups.items():
            assert {*named} == {*after.groups[group]}
            assert all(t.dtype == after.groups[group][n].dtype for n, t in named.items())
            assert all(torch.equal(t, after.groups[group][n]) for n, t in named.items())
        assert one.documents(RUN) == other.documents(RUN)


@pytest.mark.parametrize("most", [1, 2**20])
def test_stacked_and_single_states_documents_and_absences_return(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that left their stack, a tensor in two groups, and clients without state or training."""
    monkeypatch.setattr(shard, "MAX_BYTES", most)
    stores = [MemoryStore() for _ in range(8)]
    head: Tensors = {"w": torch.randn(4, 2, 3)}
    stacked: dict[str, Tensors] = {"head.after": head, "own.after": head, "count": {"n": torch.arange(4)}}
    for place, k in enumerate([5, 1, 3]):  # the client of row 3 has left
        stores[k].save(RUN, ClientMemory(2, StackedRow(stacked, place, 4)))
    for k in (0, 2, 4):
        stores[k].save(RUN, ClientMemory(k + 1, {"delta": {"w": torch.randn(2, 3) if k else torch.randn(5)}}))
    stores[6].save(RUN, ClientMemory(1))
    stores[6].write(RUN, "counts", b"\0\1")
    for store in stores[:3]:
        store.write(RUN, "enrolment.json", b"{}")
    stores[0].write(RUN, "empty", b"")
    assert_equal(stores, copied(stores, tmp_path / "clients"))


def test_a_whole_stack_returns_as_one(tmp_path: Path) -> None:
    stores = [MemoryStore() for _ in range(3)]
    stacked: dict[str, Tensors] = {"delta": {"w": torch.randn(3, 2)}}
    for place, k in enumerate([2, 0, 1]):
        stores[k].save(RUN, ClientMemory(2, StackedRow(stacked, place, 3)))
    again = copied(stores, tmp_path / "clients")
    rows = [groups for store in again if isinstance(groups := store.load(RUN).groups, StackedRow)]
    assert [(row.index, row.clients) for row in rows] == [(1, 3), (2, 3), (0, 3)]
    assert len({id(row.stacked) for row in rows}) == 1
    assert_equal(stores, again)
