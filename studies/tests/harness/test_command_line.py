"""Commands of `python -m studies`."""

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from studies.__main__ import main
from studies.harness.study import ROOT

SPEED = sorted((ROOT / "studies" / "speed").glob("*.py"))


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Leave the levels of loggers as they are."""
    levels = {name: logging.getLogger(name).level for name in ("flwr", "fedloom")}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["studies", *arguments])
    return main()


@pytest.mark.parametrize("path", SPEED, ids=lambda path: path.stem)
def test_every_timing_has_a_main(path: Path) -> None:
    module = importlib.import_module(f"studies.speed.{path.stem}")
    assert hasattr(module, "main") is (path.stem not in ("__init__", "timing", "sessions_reference"))


def test_an_unknown_timing_is_named_with_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "speed", "warp") == 2
    assert "dp_step" in capsys.readouterr().err


def test_a_timing_runs_with_its_own_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "planner.json"
    arguments = ["--clients", "5", "--history", "30", "--items", "20", "--repetitions", "1", "--out", str(out)]
    assert called(monkeypatch, "speed", "planner", *arguments) == 0
    assert out.exists()


def test_missing_data_end_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folders = ["--data", str(tmp_path / "none"), "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    assert called(monkeypatch, "run", "rules", "--only", "counts-relation", "--seeds", "1", *folders) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err
