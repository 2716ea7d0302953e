"""Walks count files, functions and returns."""

import sys
from pathlib import Path

import pytest

from tools.walk import Walk, walking

ONE = """
import walked_two

def start():
    walked_two.step(1)
    inside()

def inside():
    return walked_two.step(2)
"""
TWO = """
def step(number):
    return [number for _ in range(3)]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "walked_one.py").write_text(ONE)
    (tmp_path / "walked_two.py").write_text(TWO)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("walked_one", "walked_two"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return f"{tmp_path}/"


def test_a_walk_counts_steps_between_files(folder: str) -> None:
    import walked_one  # type: ignore[import-not-found]

    with walking(Walk((folder,))) as walk:
        walked_one.start()
    assert [Path(file).name for file in walk.visits] == ["walked_one.py", "walked_two.py"]
    assert walk.figures() == {"files": 2, "functions": 3, "returns": 2}  # one, two, one again, two again


def test_a_walk_starts_at_the_second_call_and_ends_at_the_third(folder: str) -> None:
    import walked_one

    with walking(Walk((folder,), only_after="start")) as walk:
        walked_one.start()
        assert walk.figures()["files"] == 0
        walked_one.start()
        recorded = walk.figures()
        walked_one.start()
    assert recorded == walk.figures() == {"files": 2, "functions": 3, "returns": 2}
