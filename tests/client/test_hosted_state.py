"""State of a hub's clients: on disk before a reply is sent, in the files of single clients."""

from pathlib import Path

import pytest
import torch

from client.hosted_state import HostedStore, flush_all
from client.state import ClientMemory, DiskStore, MemoryStore, Store
from common.errors import StateError


def memory(number: int) -> ClientMemory:
    return ClientMemory(number, {"control": {"w": torch.full((3,), float(number))}})


def test_states_are_on_disk_after_a_flush_and_not_before(tmp_path: Path) -> None:
    stores: dict[str, Store] = {f"c{k}": HostedStore(tmp_path / f"c{k}") for k in range(40)}
    for k, store in enumerate(stores.values()):
        store.save("run", memory(k + 1))
        assert store.load("run").round == k + 1
        assert DiskStore(tmp_path / f"c{k}").load("run").round == 0
    assert flush_all({**stores, "in memory": MemoryStore()}) == {}
    for k in range(40):
        stored = DiskStore(tmp_path / f"c{k}").load("run")
        assert stored.round == k + 1
        assert torch.equal(stored.groups["control"]["w"], torch.full((3,), k + 1.0))


def test_a_state_that_cannot_be_written_is_that_of_the_disk_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, full = HostedStore(tmp_path / "good"), HostedStore(tmp_path / "full")
    for store in (good, full):
        store.save("run", memory(1))
    assert flush_all({"good": good, "full": full}) == {}
    write = DiskStore.write

    def fail(store: DiskStore, run: str, name: str, content: bytes) -> None:
        if store.root.name == "full":
            raise OSError(28, "No space left on device")
        write(store, run, name, content)

    monkeypatch.setattr(DiskStore, "write", fail)
    for store in (good, full):
        store.save("run", memory(2))
    errors = flush_all({"good": good, "full": full})
    assert list(errors) == ["full"]
    assert isinstance(errors["full"], StateError)
    assert "No space left" in str(errors["full"])
    assert (good.load("run").round, full.load("run").round) == (2, 1)


def test_runs_have_states_of_their_own(tmp_path: Path) -> None:
    store = HostedStore(tmp_path)
    store.save("one", memory(1))
    store.save("two", memory(2))
    store.flush()
    assert [store.load(run).round for run in ("one", "two", "three")] == [1, 2, 0]
