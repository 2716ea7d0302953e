"""Simulated homes that share the rows that they do not touch, from read data to the model."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from client.data.read import partition, read_all
from client.state import ClientMemory, MemoryStore, StackedRow
from client.training import state as cohort
from client.training.stacks import TOUCHED
from common.config.parse import parse
from common.errors import RunError
from common.options import Scalar
from deploy.simulation import blocks as population
from deploy.simulation import shared_state
from deploy.simulation.shared_state import SharedMemory
from deploy.simulation.state import KeptState, simulate_measured
from tests.support.kills import killed_at

HOMES, BLOCK = 34, 16
"""Two of these homes have no rule to train on, so that all blocks are full."""


def trained(folder: Path, workers: int = 1, *, resume: bool = False, **options: Scalar) -> str:
    flat = {
        "run-id": "homes",
        "rounds": 3,
        "privacy.unit": "none",
        "resume": resume,
        "tasks.rules.hidden": 8,
        **options,
    }
    parts = partition(read_all("rules", f"demo:0-{HOMES}"), 0)
    return simulate_measured(parse(flat), parts, folder, together=BLOCK, workers=workers)[0].model_sha256


def test_the_model_has_the_bits_of_whole_tables_with_any_workers_and_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    short = list[bool]()
    save = MemoryStore.save

    def noted(store: MemoryStore, run: str, memory: ClientMemory) -> None:
        short.append(isinstance(memory.groups, StackedRow) and TOUCHED in memory.groups.stacked)
        save(store, run, memory)

    monkeypatch.setattr(MemoryStore, "save", noted)
    with killed_at() as steps:
        through = trained(tmp_path / "through")
    assert len(short) == 3 * HOMES
    assert trained(tmp_path / "two", 2) == through
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        trained(tmp_path / "killed", 2)
    assert trained(tmp_path / "killed", resume=True) == through
    assert all(short)
    monkeypatch.setattr(cohort, "find_own_rows", lambda participants: None)
    assert trained(tmp_path / "whole") == through
    assert not short[-1]


def test_a_client_that_was_left_out_goes_on_by_itself_with_any_workers_and_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    options = {"rounds": 5, "federation.norm-bound": 2.0}
    memories = dict[int, ClientMemory]()
    save = MemoryStore.save

    def noted(store: MemoryStore, run: str, memory: ClientMemory) -> None:
        memories[id(store)] = memory
        save(store, run, memory)

    monkeypatch.setattr(MemoryStore, "save", noted)
    with killed_at() as steps:
        through = trained(tmp_path / "through", **options)
    rounds = [json.loads(line) for line in (tmp_path / "through" / "homes" / "metrics.jsonl").read_text().splitlines()]
    left_out = {client for event in rounds if event.get("round", 5) < 5 for client in event["refused"]}
    is_short = [isinstance(m.groups, StackedRow) and TOUCHED in m.groups.stacked for m in memories.values()]
    assert 0 < is_short.count(False) == len(left_out) < BLOCK
    assert trained(tmp_path / "two", 2, **options) == through
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        trained(tmp_path / "killed", 2, **options)
    assert trained(tmp_path / "killed", resume=True, **options) == through


@pytest.mark.parametrize("workers", [1, 2])
def test_the_model_has_the_same_bits_and_no_file_stays(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    folders = list[Path]()
    map_file = shared_state._map_file

    def noted(size: int, folder: Path) -> torch.Tensor:
        folders.append(folder)
        return map_file(size, folder)

    monkeypatch.setattr(shared_state, "_map_file", noted)

    def trained(runs: Path, count: int, *, on_disk: bool) -> str:
        flat = {"run-id": "homes", "rounds": 4, "privacy.unit": "none", "federation.norm-bound": 2.0}
        parts = partition(read_all("rules", "demo:0-34"), 0)
        state = KeptState(on_disk=on_disk)
        return simulate_measured(parse(flat), parts, runs, together=16, workers=count, state=state)[0].model_sha256

    expected = trained(tmp_path / "memory", 1, on_disk=False)
    assert not folders
    assert trained(tmp_path / "disk", workers, on_disk=True) == expected
    assert {*folders} == ({tmp_path / "disk" / "homes"} if workers == 1 else set()), "copies have files of their own"
    names = [sorted(path.name for path in (tmp_path / runs / "homes").iterdir()) for runs in ("memory", "disk")]
    assert names[0] == names[1]


def test_a_full_disk_ends_the_run_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SharedMemory(4096, tmp_path)
    layout = memory.write({"first": {"a": torch.ones(8)}})
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))
    assert memory.write({"first": {"a": torch.full((8,), 2.0)}}) == layout, "the same bytes again"
    with pytest.raises(RunError, match=r"the disk of .* is full; continue with --resume, without --state-on-disk"):
        memory.write({"first": {"a": torch.ones(64)}})
    assert memory.read(layout)["first"]["a"].tolist() == [2.0] * 8
    with pytest.raises(RunError, match="exceeds 4,096 bytes"):
        memory.write({"first": {"a": torch.ones(4096)}})
