"""Ratings task: processes train the same model as a simulation, and what they leave behind is closed and without updates."""

import pytest

from tests.support.files_left import files_in, require_nothing_left
from tests.system.desk import Desk

pytestmark = pytest.mark.system


def test_a_federation_of_raters_trains_the_model_of_a_simulation(desk: Desk) -> None:
    """The paper's model with its private embedding, on ratings that arrive over the rounds."""
    made = ("--method", "fedavg", "--task", "ratings", "--data", "demo:0-24", "--clients", "2", "--rounds", "2")
    options = (*made, "--seed", "3", "--set", "model=paper", "--set", "tasks.ratings.arrival=online", "--patience", "0")
    up = desk.up(*options, "--run-id", "films", "--no-alone", "--superlink-state", "sqlite")
    up.wait_for("round 1/2")
    assert len([*desk.folder.rglob("superlink.sqlite")]) == 1  # test_faults.py: with its state in memory there is none
    assert up.end() == 0, up.error()
    require_little_left(desk)
    desk.require_clean(up)
    result = up.result()
    assert (result["task"], result["model"], result["status"]) == ("ratings", "paper", "completed")
    baselines = {"rmse_local_mean", "rmse_prior_mean", "rmse_half", "f1_all_liked"}
    assert {"rmse", "mae", "f1"} | baselines <= result["metrics"].keys()

    simulated = desk.simulate(*options)
    assert simulated["model_sha256"] == result["model_sha256"]
    assert simulated["metrics"] == pytest.approx(result["metrics"], rel=1e-9)


def require_little_left(desk: Desk) -> None:
    """Check that files are closed to others, and without updates, messages or keys outside their files."""
    assert [*desk.folder.rglob("superlink.sqlite*")] == []
    runs, home = desk.folder / "runs", desk.folder / ".fedloom"
    opened = [path for folder in (runs, home) for path in [folder, *folder.rglob("*")] if path.lstat().st_mode & 0o077]
    assert [str(path) for path in opened if not path.is_symlink()] == []
    require_nothing_left(files_in([runs, home, desk.folder / ".flwr"]))
