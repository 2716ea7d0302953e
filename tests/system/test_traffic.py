"""Traffic task: processes train the same model as a simulation."""

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system

SMALL = (
    "tasks.traffic.history=30",
    "tasks.traffic.hidden=4",
    "tasks.traffic.batch=8",
    "algorithm.fedstl.clusters=2",
    "training.local-steps=3",
)


def test_a_federation_of_sensors_trains_the_model_of_a_simulation(desk: Desk) -> None:
    sets = [word for option in SMALL for word in ("--set", option)]
    options = ("--method", "fedstl", "--data", "demo:0-4", "--clients", "2", "--rounds", "2", "--seed", "3", *sets)
    up = desk.up(*options, "--run-id", "roads", "--no-alone")
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["method"], result["task"], result["status"]) == ("fedstl", "traffic", "completed")
    assert {"mse", "rho_trace", "teacher_mse", "profile_mse", "truth_rho_trace"} <= result["metrics"].keys()
    metrics = result["metrics"]
    assert metrics["teacher_rho_trace"] == metrics["rho_trace"] < 1, "the teacher goes the calibrated share of the way"
    assert desk.rounds("roads")[-1]["clusters"].keys() == {"client-0", "client-1"}

    simulated = desk.simulate(*options)
    assert simulated["model_sha256"] == result["model_sha256"]
    assert simulated["metrics"] == pytest.approx(result["metrics"], rel=1e-9)
