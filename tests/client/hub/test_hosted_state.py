"""State of a hub's clients: on disk before a reply is sent."""

from pathlib import Path

import torch

from client.hub.state import FOLDER, HostedStore, StateBlocks, flush_all, load_stored
from client.state import ClientMemory, DiskStore, MemoryStore, Store
from common.errors import StateError


def memory(number: int) -> ClientMemory:
    return ClientMemory(number, {"control": {"w": torch.full((3,), float(number))}})


def hosted(folder: Path, hub: str, number: int) -> dict[str, Store]:
    blocks = StateBlocks(folder / FOLDER / hub)
    return {f"{hub}/c{k}": HostedStore(folder / f"c{k}" / "data", blocks) for k in range(number)}


def test_states_are_on_disk_after_a_flush_and_not_before(tmp_path: Path) -> None:
    stores = hosted(tmp_path, "ward", 40)
    for k, store in enumerate(stores.values()):
        store.save("run", memory(k + 1))
        assert store.load("run").round == k + 1
        assert load_stored(tmp_path / f"c{k}" / "data", "run").round == 0
    assert flush_all({**stores, "in memory": MemoryStore()}) == {}
    for k, store in enumerate(hosted(tmp_path, "ward", 40).values()):
        assert torch.equal(store.load("run").groups["control"]["w"], torch.full((3,), k + 1.0))


def test_states_that_cannot_be_written_fail_all_clients_of_the_hub(tmp_path: Path) -> None:
    stores = hosted(tmp_path, "ward", 2) | hosted(tmp_path, "shop", 1)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "ward").write_text("a file in place of the folder")
    for store in stores.values():
        store.save("run", memory(1))
    errors = flush_all(stores)
    assert list(errors) == ["ward/c0", "ward/c1"]
    assert all(isinstance(error, StateError) for error in errors.values())
    assert [store.load("run").round for store in stores.values()] == [0, 0, 1]


def test_a_client_that_had_a_node_of_its_own_continues(tmp_path: Path) -> None:
    [store] = hosted(tmp_path, "ward", 1).values()
    DiskStore(tmp_path / "c0" / "data").save("run", memory(4))
    assert store.load("run").round == 4
    store.save("run", memory(5))
    flush_all({"c0": store})
    assert store.load("run").round == load_stored(tmp_path / "c0" / "data", "run").round == 5


def test_other_data_have_other_state(tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path / FOLDER / "ward")
    before, after = (HostedStore(tmp_path / "c0" / data, blocks) for data in ("one", "two"))
    before.save("run", memory(1))
    flush_all({"c0": before})
    assert (before.load("run").round, after.load("run").round) == (1, 0)
    assert load_stored(after.root, "run").round == 0
