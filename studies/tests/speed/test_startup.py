"""Figures of commands at their start, against their limits."""

from pathlib import Path

import pytest

from common.errors import RunError
from studies.harness.command import time_start
from studies.speed.startup import measure_command, missed


def test_a_light_command_has_its_own_processor_time_and_memory() -> None:
    row = measure_command("--version", 1)
    assert row["cpu_seconds"] > 0
    assert 5 < row["resident_mb"] < 60
    assert row["modules"] == []


def test_a_command_that_fails_has_no_figures() -> None:
    with pytest.raises(RunError, match="stop has ended with exit code 2"):
        measure_command("stop", 1)


def test_heavy_packages_are_found(tmp_path: Path) -> None:
    start = time_start(["simulate", "--rounds", "0"], tmp_path, {})
    assert (start.code, "torch" in start.heavy) == (2, True)


def test_each_missed_limit_and_each_heavy_package_is_a_line() -> None:
    row = {"command": "runs", "cpu_seconds": 0.9, "resident_mb": 50.0, "modules": ["torch"]}
    limits = {"cpu_seconds": 0.8, "resident_mb": 60.0}
    assert missed({**row, "limits": limits}) == ["runs: cpu_seconds 0.90, at most 0.8", "runs: imports torch"]
    assert missed({**row, "modules": [], "limits": {"cpu_seconds": 1.0}}) == []
