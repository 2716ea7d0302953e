"""What is kept of a run, and under which name."""

from pathlib import Path

import pytest

from benchmarks.memory import Memory
from benchmarks.ratings.experiments import EXPERIMENTS
from benchmarks.ratings.sets import SETTINGS
from benchmarks.ratings.study import MECHANISMS, PLANNERS
from benchmarks.ratings.training import Bench
from client.tasks.ratings.data.reader import read_raters

BY_KEY = {one.key: one for one in EXPERIMENTS}


def bench(folder: Path, compute: bool = True) -> Bench:
    made = Bench(SETTINGS[0], folder, Memory(folder, folder / "none.json", compute=compute))
    made.dataset = read_raters("demo:0-4")
    return made


@pytest.mark.parametrize(("planner", "measured"), [("uniform", 19), ("bgtplanner", 18)])
def test_a_curve_has_every_round_but_one_measured_on_test_ratings(planner: str, measured: int, tmp_path: Path) -> None:
    """A run that ends early learns of it after its last round was measured on held-out ratings."""
    trial = bench(tmp_path).trial(BY_KEY[f"planned-{planner}-gaussian"], 0)
    assert trial is not None
    assert trial.failure == ""
    assert list(trial.curve) == [str(number) for number in range(1, measured + 1)]
    assert trial.rounds == (20 if planner == "uniform" else measured)


def test_results_of_planners_that_drew_alike_on_all_splits_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    asked: list[str] = []

    class Listening(Memory):
        def recall(self, key: str, *rest: object) -> None:
            asked.append(key)

    known = bench(tmp_path)
    known.memory = Listening(tmp_path, tmp_path / "none.json", compute=False)
    for planner in PLANNERS:
        for mechanism in MECHANISMS:
            known.authors(100, 2, planner, mechanism)
    assert asked == [
        "ml-authors-100-seed2",
        "ml-authors-uniform-laplace-100-seed2",
        "ml-authors-adpml-gaussian-100-seed2",
        "ml-authors-adpml-laplace-100-seed2",
        "ml-authors-adap-gaussian-100-seed2",
        "ml-authors-adap-laplace-100-seed2",
        "ml-authors-bgtplanner-gaussian-own-draws-100-seed2",
        "ml-authors-bgtplanner-laplace-own-draws-100-seed2",
    ]
