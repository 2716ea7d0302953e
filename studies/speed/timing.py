"""Timing of ways to do the same work: interleaved turns and the median of their ratios."""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from studies.harness.study import RESULTS

T = TypeVar("T")

Times = dict[str, list[float]]
"""Way -> seconds of each turn."""


def time_in_turns(ways: Mapping[str, Callable[[], object]], turns: int, *, warm_up: bool = True) -> Times:
    """Return the seconds of each way in each turn.

    All ways take one turn after the other, so load affects them alike.

    Args:
        ways: Name -> work.
        turns: Number of timed turns.
        warm_up: True if one turn that does not count goes first.
    """
    times: Times = {name: [] for name in ways}
    for turn in range(turns + warm_up):
        for name, work in ways.items():
            seconds = time_work(work)[1]
            if turn >= warm_up:
                times[name].append(seconds)
    return times


def time_work(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of some work and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def median_ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Return the median over turns of the two times of a turn."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def median_seconds(work: Callable[[], object], repetitions: int, *, warm_up: bool = False) -> float:
    """Return the median seconds of so many repetitions."""
    return statistics.median(time_in_turns({"": work}, repetitions, warm_up=warm_up)[""])


def options(description: str | None, name: str) -> argparse.ArgumentParser:
    """Return a parser with `--out`, the JSON file of the results."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=RESULTS / f"{name}.json", help="file of the results")
    return parser


def use_few_threads() -> int:
    """Let torch use `OMP_NUM_THREADS` threads, by default one; return their number."""
    import torch  # some timings do without

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    return torch.get_num_threads()


def write(path: Path, document: Mapping[str, Any], *packages: str, under: str = "") -> None:
    """Write results as JSON, with the versions of Python and of some packages.

    Args:
        path: File to write.
        document: Results.
        packages: Names of the packages.
        under: Key of the file to write under; the file's other keys stay. Empty: the file has these results alone.
    """
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    found = {**document, "versions": versions}
    if under:
        found = {**(json.loads(path.read_text("utf-8")) if path.exists() else {}), under: found}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
