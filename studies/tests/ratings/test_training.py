"""Curves and rounds that are stored of a run."""

from pathlib import Path

import pytest

from client.data.read import read_all
from studies.harness.bench import Bench
from studies.harness.results import Results
from studies.harness.store import Store
from studies.ratings.experiments import EXPERIMENTS
from studies.ratings.runs import trial_of

BY_KEY = {(one.protocol, one.key): one for one in EXPERIMENTS}


@pytest.mark.parametrize(("planner", "rounds"), [("uniform", 19), ("bgtplanner", 18)])
def test_a_curve_has_every_round_but_one_measured_on_test_ratings(planner: str, rounds: int, tmp_path: Path) -> None:
    """A run that ends early measures its last round on held-out ratings."""
    bench = Bench("ml", lambda: read_all("ratings", "demo:0-4"), Store(tmp_path, Results()), trial_of)
    trial = bench.trial(BY_KEY["planned", f"{planner}-gaussian"], {}, 0)
    assert trial.failure == ""
    assert list(trial.curve) == list(range(1, rounds + 1))
    stored = {"rmse", "spent"} if planner == "bgtplanner" else {"rmse"}
    assert all(found.keys() == stored for found in trial.curve.values())
    assert trial.metrics["rounds"] == (20 if planner == "uniform" else rounds)
    assert trial.metrics["epsilon_spent"] <= 10
