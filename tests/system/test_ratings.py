"""The ratings task as a person uses it: processes that keep their ratings, and the simulation they agree with."""

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system


def test_a_federation_predicts_ratings_and_ends_in_the_model_of_a_simulation(desk: Desk) -> None:
    """The paper's model, of which each client keeps an embedding to itself, on ratings that arrive over the rounds."""
    made = ("--method", "fedavg", "--task", "ratings", "--data", "demo:0-24", "--clients", "2", "--rounds", "2")
    options = (*made, "--seed", "3", "--set", "model=paper", "--set", "tasks.ratings.arrival=online")
    up = desk.up(*options, "--run-id", "films")
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["task"], result["model"], result["status"]) == ("ratings", "paper", "completed")
    lines = {"rmse_local_mean", "rmse_prior_mean", "rmse_half", "f1_all_liked"}
    assert {"rmse", "mae", "f1"} | lines <= result["metrics"].keys()

    alone = desk.start("simulate", *options, "--together", "1", "--run-id", "alone", "--json")
    assert alone.end() == 0, alone.error()
    assert alone.result()["model_sha256"] == result["model_sha256"]
    assert alone.result()["metrics"] == pytest.approx(result["metrics"], rel=1e-9)
