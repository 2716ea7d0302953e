"""Memory and time of a solve: stated before, refused where they do not fit."""

import logging
from pathlib import Path

import numpy as np
import pytest

from common.arrays import Arrays
from common.contribution import UPDATE, Contribution
from common.errors import DataError
from common.methods.ridge import Ridge
from common.tasks.rules import ease
from server.methods import ridge
from server.round.method import RoundContext
from server.round.state import RunState
from tests.support.toys import CATALOGUE, configured


def at(solved: Arrays) -> RoundContext:
    """Return the second round of a run."""
    return RoundContext(configured("ridge"), RunState(1, {}, statics=solved))


def of_triples(number: int) -> Arrays:
    """Return what is known if homes use so many triples."""
    sizes, triples = ease.sizes(CATALOGUE, False), np.arange(number)
    return {**sizes, ease.TRIPLES: triples, ease.PAIRS: np.unique(triples // sizes[ease.SIZES][1])}


def files(folder: Path, monkeypatch: pytest.MonkeyPatch, free: str, **group: str) -> None:
    """Let the machine have `free` KiB, and the container these files."""
    (folder / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {free} kB\n", "ascii")
    for name, text in group.items():
        (folder / f"memory.{name}").write_text(text, "ascii")
    monkeypatch.setattr(ridge, "MEMINFO", folder / "meminfo")
    monkeypatch.setattr(ridge, "GROUP", folder)


def test_a_sum_that_does_not_fit_is_refused_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = of_triples(2000)  # 2,001,000 pairs of 8 bytes, and four matrices
    files(tmp_path, monkeypatch, str(2**16))
    with pytest.raises(
        DataError, match=r"sum 2 of 3 and its solve need 0\.1 GiB of memory, and 0\.1 GiB are free; give"
    ):
        ridge.RidgeStep(Ridge()).check(at(solved))
    files(tmp_path, monkeypatch, str(2**20))
    ridge.RidgeStep(Ridge()).check(at(solved))


@pytest.mark.parametrize(
    ("group", "free"),
    [
        ({}, 2.0**30),
        ({"max": "max\n", "stat": "anon 5\n"}, 2.0**30),
        ({"max": "1000\n", "stat": "anon 400\nfile 500\n"}, 600.0),
        ({"max": "unreadable\n", "stat": "anon 5\n"}, 2.0**30),
    ],
)
def test_free_memory_is_that_of_the_container(
    group: dict[str, str], free: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, monkeypatch, str(2**20), **group)
    assert ridge.free_memory() == free


def test_without_such_files_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "MEMINFO", tmp_path / "none")
    assert ridge.free_memory() == np.inf


def test_a_solve_is_announced_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    solved, total = of_triples(3), Contribution(per_step=False)
    total.add_sums(UPDATE, {ease.GRAM: np.array([1, 0.5, 1, 0, 0, 1.0])[:, None], ease.OWNED: np.ones((1, 1))})
    with caplog.at_level(logging.INFO, "fedloom.server"):
        *_, found = ridge.RidgeStep(Ridge()).step(at(solved), {}, {}, total)
    assert ease.is_solved(found)
    assert [line.split(":")[1][:8] for line in caplog.messages] == [" solving", " solved "]
    caplog.clear()
    first = Contribution(per_step=False)
    first.add_sums(UPDATE, {ease.USED: np.ones((36, 1))})
    with caplog.at_level(logging.INFO, "fedloom.server"):
        ridge.RidgeStep(Ridge()).step(at(ease.sizes(CATALOGUE, False)), {}, {}, first)
    assert not caplog.messages, "a choice of triples takes no time"


def test_triples_beyond_the_limit_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    solved = ease.sizes(CATALOGUE, False)
    solved[ease.SIZES][3] = 2
    sums = ease.template(solved)[ease.USED]
    sums[:5, 0] = [3, 1, 2, 1, 1]
    total = Contribution(per_step=False)
    total.add_sums(UPDATE, {ease.USED: sums})
    _, _, found = ridge.RidgeStep(Ridge()).step(at(solved), {}, {}, total)
    assert found[ease.TRIPLES].tolist() == [0, 2]
    assert "3 of 5 entries of the first sum are left out, those with the smallest counts" in caplog.text
