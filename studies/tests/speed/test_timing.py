"""Turns are interleaved, and the ratio is the median over turns."""

import json
from pathlib import Path

from studies.speed import timing


def test_ways_take_turns_after_one_that_does_not_count() -> None:
    order: list[str] = []
    times = timing.time_in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 2, "b": 2}
    timing.time_in_turns({"a": lambda: order.append("a")}, 1, warm_up=False)
    assert len(order) == 7


def test_the_ratio_is_of_the_times_of_a_turn() -> None:
    assert timing.median_ratio([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == 3.0


def test_results_name_the_versions(tmp_path: Path) -> None:
    timing.write(tmp_path / "new" / "x.json", {"seconds": 1.5}, "numpy")
    document = json.loads((tmp_path / "new" / "x.json").read_text("utf-8"))
    assert document["seconds"] == 1.5
    assert document["versions"].keys() == {"python", "numpy"}


def test_results_under_a_key_leave_the_others(tmp_path: Path) -> None:
    timing.write(tmp_path / "x.json", {"seconds": 1.5}, "numpy")
    timing.write(tmp_path / "x.json", {"seconds": 3.0}, "numpy", under="sizes")
    document = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert document["seconds"] == 1.5
    assert document["sizes"]["seconds"] == 3.0
