"""Client states of a hub: one file for all that trained together, whole or not there."""

import os
import resource
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from client.hub import state as state_blocks
from client.hub.state import FOLDER, HostedStore, StateBlocks, flush_all, load_stored
from client.state import ClientMemory, DiskStore, MemoryStore, StackedRow, Store
from common.errors import StateError, WireError


def single(number: int) -> ClientMemory:
    return ClientMemory(number, {"control": {"w": torch.full((3,), float(number))}, "count": {"n": torch.tensor(1)}})


def stacked(names: list[str], number: int) -> dict[str, ClientMemory]:
    """Return states as clients that trained together have them; client k has the number 100 · round + k."""
    groups = {"control": {"w": torch.arange(len(names)).float()[:, None].repeat(1, 3) + 100 * number}}
    return {name: ClientMemory(number, StackedRow(groups, k, len(names))) for k, name in enumerate(names)}


def save(blocks: StateBlocks, memories: Mapping[str, ClientMemory], run: str = "run") -> None:
    for name, memory in memories.items():
        blocks.save(run, name, memory)
    blocks.flush()


def stored(folder: Path, names: list[str], run: str = "run") -> list[tuple[int, float]]:
    """Return round and number of each client as another process reads them."""
    found = [StateBlocks(folder).load(run, name) for name in names]
    return [(memory.round, float(memory.groups["control"]["w"][0]) if memory.round else 0.0) for memory in found]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "run").iterdir())


NAMES = [f"c{k}/data" for k in range(40)]


def test_one_file_and_one_wait_for_the_disk_hold_all_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = list[bool](), os.fsync

    def noted(handle: int) -> None:
        synced.append(stat.S_ISREG(os.fstat(handle).st_mode))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    blocks, mixed = StateBlocks(tmp_path), stacked(NAMES[:20], 1) | {name: single(1) for name in NAMES[20:]}
    for name, memory in mixed.items():
        blocks.save("run", name, memory)
        assert blocks.load("run", name).round == 1
    assert not (tmp_path / "run").exists()
    blocks.flush()
    assert sum(synced) == 1
    assert stored(tmp_path, NAMES) == [(1, 100.0 + k) for k in range(20)] + [(1, 1.0)] * 20
    [path] = (tmp_path / "run").iterdir()
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


def test_a_block_stays_until_later_ones_have_all_its_clients(tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path)
    save(blocks, stacked(NAMES[:4], 1))
    save(blocks, stacked(NAMES[:2], 2))
    assert len(files(tmp_path)) == 2
    assert stored(tmp_path, NAMES[:4]) == [(2, 200.0), (2, 201.0), (1, 102.0), (1, 103.0)]
    save(blocks, stacked(NAMES[2:4], 3))
    assert len(files(tmp_path)) == 2
    assert stored(tmp_path, NAMES[:4]) == [(2, 200.0), (2, 201.0), (3, 300.0), (3, 301.0)]


def test_the_last_clients_of_a_block_move_so_that_the_disk_holds_twice_the_states_at_most(tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path)
    save(blocks, stacked(NAMES, 1))
    for number in range(2, 120):
        save(StateBlocks(tmp_path) if number % 7 == 0 else blocks, {NAMES[number * number % 37]: single(number)})
        blocks = StateBlocks(tmp_path) if number % 7 == 0 else blocks
        sizes = [len(state_blocks._unpack(path)) for path in (tmp_path / "run").iterdir()]
        assert sum(sizes) <= 2 * len(NAMES) + 1
    last = {number * number % 37: number for number in range(2, 120)}
    assert stored(tmp_path, NAMES) == [(last[k], float(last[k])) if k in last else (1, 100.0 + k) for k in range(40)]


class Killed(BaseException):
    """End of the process at some instruction."""


def kill(*_: object, **__: object) -> None:
    raise Killed


KILLS: dict[str, tuple[object, str, int]] = {
    "while it is written": (os, "fsync", 1),
    "before the rename": (Path, "replace", 1),
    "after the rename": (state_blocks, "put_in_place", 2),
    "before the old block is removed": (Path, "unlink", 2),
}
"""Moment -> function, and the round whose states another process finds."""


@pytest.mark.parametrize("moment", KILLS)
def test_a_kill_leaves_all_old_states_or_all_new_ones(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, function, expected = KILLS[moment]
    blocks = StateBlocks(tmp_path)
    save(blocks, stacked(NAMES, 1))
    place = state_blocks.put_in_place

    def dying(draft: Path, path: Path) -> None:
        place(draft, path)
        kill()

    replacement = dying if function == "put_in_place" else kill
    with monkeypatch.context() as patch:
        patch.setattr(owner, function, replacement)
        with pytest.raises(Killed):
            save(blocks, stacked(NAMES, 2))
    assert stored(tmp_path, NAMES) == [(expected, 100.0 * expected + k) for k in range(40)]
    again = StateBlocks(tmp_path)
    save(again, stacked(NAMES, 3))
    assert stored(tmp_path, NAMES) == [(3, 300.0 + k) for k in range(40)]
    assert len(files(tmp_path)) == 1, "nothing is left lying about"


def test_a_full_disk_leaves_the_old_states(tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path)
    save(blocks, stacked(NAMES, 1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(StateError, match="cannot be written"):
            save(blocks, stacked(NAMES, 2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert stored(tmp_path, NAMES) == [(1, 100.0 + k) for k in range(40)]


def test_states_that_cannot_be_written_are_those_of_the_disk_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = StateBlocks(tmp_path)
    save(blocks, {"c0": single(1), "c1": single(1)})

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state_blocks, "put_in_place", fail)
        with pytest.raises(StateError, match="No space left"):
            save(blocks, {"c0": single(2)})
    assert [blocks.load("run", name).round for name in ("c0", "c1")] == [1, 1]
    save(blocks, {"c1": single(3)})
    assert stored(tmp_path, ["c0", "c1"]) == [(1, 1.0), (3, 3.0)]


def test_runs_have_states_of_their_own_and_none_is_forgotten(tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path)
    blocks.save("one", "c0", single(1))
    blocks.save("two", "c0", single(2))
    blocks.flush()
    assert [blocks.load(run, "c0").round for run in ("one", "two", "three", "one")] == [1, 2, 0, 1]
    with pytest.raises(WireError, match="invalid run name"):
        blocks.load("../one", "c0")


@pytest.mark.parametrize(
    "damage", [lambda c: c[: len(c) // 2], lambda c: b"", lambda c: c.replace(b"clients", b"patient")]
)
def test_a_damaged_block_is_named_and_never_passed_over(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path)
    save(blocks, stacked(NAMES[:4], 1))
    save(blocks, stacked(NAMES[:2], 2))
    path = tmp_path / "run" / files(tmp_path)[1]
    path.write_bytes(damage(path.read_bytes()))
    reader = StateBlocks(tmp_path)
    for name in NAMES[:4]:
        with pytest.raises(StateError, match=rf"{path.name} holds no client states .* move it away"):
            reader.load("run", name)
    path.unlink()
    assert reader.load("run", NAMES[0]).round == 1


def test_a_link_is_no_block(tmp_path: Path) -> None:
    save(StateBlocks(tmp_path), {"c0": single(1)})
    path = next((tmp_path / "run").iterdir())
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="cannot be read"):
        StateBlocks(tmp_path).load("run", "c0")


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
