"""Ratings task: processes train the same model as a simulation."""

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system


def test_a_federation_of_raters_trains_the_model_of_a_simulation(desk: Desk) -> None:
    """The paper's model with its private embedding, on ratings that arrive over the rounds."""
    made = ("--method", "fedavg", "--task", "ratings", "--data", "demo:0-24", "--clients", "2", "--rounds", "2")
    options = (*made, "--seed", "3", "--set", "model=paper", "--set", "tasks.ratings.arrival=online", "--patience", "0")
    up = desk.up(*options, "--run-id", "films", "--no-alone")
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["task"], result["model"], result["status"]) == ("ratings", "paper", "completed")
    baselines = {"rmse_local_mean", "rmse_prior_mean", "rmse_half", "f1_all_liked"}
    assert {"rmse", "mae", "f1"} | baselines <= result["metrics"].keys()

    simulated = desk.simulate(*options)
    assert simulated["model_sha256"] == result["model_sha256"]
    assert simulated["metrics"] == pytest.approx(result["metrics"], rel=1e-9)
