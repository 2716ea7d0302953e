"""Private state on disk: complete or absent, readable by its owner only."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from client.checks import ABOUT, read_about, write_about
from client.state import ClientMemory, DiskStore, MemoryStore, Store
from common.errors import StateError, WireError

MEMORY = ClientMemory(7, {"delta": {"encoder.w": torch.tensor([[1.5, -2.0]])}, "count": {"count": torch.tensor(3.0)}})


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return DiskStore(tmp_path / "state") if request.param == "disk" else MemoryStore()


def same(left: ClientMemory, right: ClientMemory) -> bool:
    return left.round == right.round and {
        (g, n): t.tolist() for g, named in left.groups.items() for n, t in named.items()
    } == {(g, n): t.tolist() for g, named in right.groups.items() for n, t in named.items()}


def test_before_the_first_round_the_state_is_empty(store: Store) -> None:
    assert same(store.load("run"), ClientMemory())
    assert store.read("run", "model") == b""


def test_saved_state_is_loaded_per_run(store: Store) -> None:
    store.save("run-a", MEMORY)
    store.write("run-a", "document", b"abc")
    assert same(store.load("run-a"), MEMORY)
    assert same(store.load("run-b"), ClientMemory())
    assert (store.read("run-a", "document"), store.read("run-b", "document")) == (b"abc", b"")
    store.save("run-a", ClientMemory(8, {}))
    assert same(store.load("run-a"), ClientMemory(8, {}))


def test_files_are_their_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskStore(tmp_path).save("run", MEMORY)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "run" / "memory.safetensors").stat().st_mode) == 0o600


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_crash_before_the_rename_leaves_the_old_state(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DiskStore(tmp_path)
    store.save("run", MEMORY)

    def crash(*_: object) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync", crash) if broken == "fsync" else (Path, "replace", crash)))
        with pytest.raises(OSError, match="the power went"):
            store.save("run", ClientMemory(8, {}))
    assert same(store.load("run"), MEMORY)
    store.save("run", ClientMemory(9, {}))
    assert same(store.load("run"), ClientMemory(9, {}))
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["memory.safetensors"], "nothing is left lying about"


def torn(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    "damage", [torn, lambda c: b"", lambda c: b"not a tensor", lambda c: c.replace(b'"memory"', b'"nemory"')]
)
def test_an_unreadable_file_is_named_with_advice(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    store, path = DiskStore(tmp_path), tmp_path / "run" / "memory.safetensors"
    store.save("run", MEMORY)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StateError, match=r"memory\.safetensors is not a client state .* move it away"):
        store.load("run")


@pytest.mark.parametrize("run", ["../elsewhere", "/etc", "a/b", "", ".", "..", "a\0b"])
def test_a_run_name_of_the_server_cannot_leave_the_folder(run: str, tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "state")
    for attempt in (lambda: store.load(run), lambda: store.save(run, MEMORY), lambda: store.read(run, "x")):
        with pytest.raises(WireError, match="invalid run name"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_state_is_plain_tensors_and_json(tmp_path: Path) -> None:
    DiskStore(tmp_path).save("run", MEMORY)
    content = (tmp_path / "run" / "memory.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert sorted(header) == ["__metadata__", "count/count", "delta/encoder.w"]


def test_the_stored_origin_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    root = tmp_path / "ann" / "abc"
    assert read_about(root) == {}
    write_about(root, {"data": "/home/ann/sensors.csv", "part": [0, 1]})
    write_about(root, {"data": "/home/ann/other.csv", "part": [0, 1]})
    assert read_about(root) == {"data": "/home/ann/other.csv", "part": [0, 1]}
    assert stat.S_IMODE((root / ABOUT).stat().st_mode) == 0o600
    (root / ABOUT).write_text("{")
    with pytest.raises(StateError, match="delete it, the client writes a new one"):
        read_about(root)
