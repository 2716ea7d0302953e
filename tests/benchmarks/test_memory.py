"""A study goes on where it was, also in a fresh clone; and every published page is what its results say."""

import importlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.memory import RUNS, Memory
from benchmarks.studies import ROOT

RESULTS = ROOT / "docs" / "results"
PAGES = [
    name
    for name in ("rules", "sessions", "traffic", "ratings", "markets")
    if RUNS in json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
]
"""Those made since results hold everything that a page is made of."""


def test_what_was_made_once_is_known_from_then_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = Memory(tmp_path / "cache", tmp_path / "none.json", compute=True)
    assert memory.recall("a", lambda: {"mse": 0.5}, lambda made: f"mse {made['mse']}") == {"mse": 0.5}
    assert "a: 0 s mse 0.5" in capsys.readouterr().out
    again = Memory(tmp_path / "cache", tmp_path / "none.json", compute=True)
    assert again.recall("a", lambda: pytest.fail("computed twice")) == {"mse": 0.5}
    assert again.used == {"a": {"mse": 0.5}}


def test_published_results_are_known_without_a_cache(tmp_path: Path) -> None:
    published = tmp_path / "study.json"
    published.write_text(json.dumps({RUNS: {"a": [1, 2]}}), "utf-8")
    memory = Memory(tmp_path / "cache", published, compute=False)
    assert memory.recall("a", lambda: pytest.fail("computed though published")) == [1, 2]
    assert memory.recall("b", lambda: pytest.fail("computed though not to be")) is None
    assert list(memory.used) == ["a"]


def test_a_run_that_fails_is_not_remembered(tmp_path: Path) -> None:
    memory = Memory(tmp_path, tmp_path / "none.json", compute=True)
    with pytest.raises(ZeroDivisionError):
        memory.recall("a", lambda: 1 / 0)
    assert memory.recall("a", lambda: 3) == 3


@pytest.fixture
def _loggers_as_they_were() -> Iterator[None]:
    """A study silences them for good, and other tests of this process listen."""
    loggers = [logging.getLogger(name) for name in ("flwr", "fedloom")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("_loggers_as_they_were")
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_results_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = (RESULTS / f"{name}.json").read_text("utf-8")
    (tmp_path / f"{name}.json").write_text(published, "utf-8")
    options = ["--table-only", "--out", str(tmp_path), "--cache", str(tmp_path / "cache"), "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [name, *options])
    importlib.import_module(f"benchmarks.{name}.__main__").main()
    shown, made = ((place / f"{name}.md").read_text("utf-8").splitlines() for place in (RESULTS, tmp_path))
    assert shown[2].startswith("Made by `python -m benchmarks.")  # with when, and on which versions
    assert shown[:2] + shown[3:] == made[:2] + made[3:]
    assert json.loads((tmp_path / f"{name}.json").read_text("utf-8"))[RUNS] == json.loads(published)[RUNS]
