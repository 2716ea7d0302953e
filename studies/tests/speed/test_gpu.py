"""Study of GPUs: silent without one; the same cohorts otherwise."""

from pathlib import Path

import pytest
import torch

from studies.speed import gpu


def test_without_a_gpu_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["gpu", "--out", str(tmp_path / "gpu.json")])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.main()
    assert capsys.readouterr().out.startswith("no GPU for this PyTorch")
    assert not [*tmp_path.iterdir()]


def test_every_case_trains_and_its_section_replaces_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "DATA", {"rules": "demo:0-3", "traffic": "demo:0-2"})
    monkeypatch.setattr(gpu, "LINES", 30)
    small = {"training.local-steps": 1, "tasks.traffic.batch": 2, "tasks.traffic.history": 24}
    monkeypatch.setitem(gpu.CASES, "traffic, transformer", {**gpu.CASES["traffic, transformer"], **small})
    train_all = gpu.train_all
    monkeypatch.setattr(gpu, "train_all", lambda config, clients, device, size: train_all(config, clients, "cpu", size))
    rows = [gpu.measure(name, 0.0) for name in gpu.CASES]
    assert all(row["turns"] == 1 and row["relative_difference"] < 1e-4 for row in rows)
    page = tmp_path / "speed.md"
    page.write_text("# Speed\n\n## Further timings\n")
    for device in ("one", "another"):
        gpu.write_section(page, gpu.section(device, rows))
    text = page.read_text()
    assert text.count("## GPU") == 1
    assert "another against" in text
    assert text.endswith("## Further timings\n")
