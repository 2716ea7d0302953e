"""State of a large simulated population in files."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from client.data.read import partition, read_all
from common.config.parse import parse
from common.errors import RunError
from deploy.simulation import blocks as population
from deploy.simulation import shared_state
from deploy.simulation.shared_state import SharedMemory
from deploy.simulation.state import KeptState, simulate_measured


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
