"""Federations of processes train the model of a simulation, which answers by names."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system

SMALL = (
    *("tasks.traffic.history=30", "tasks.traffic.hidden=4", "tasks.traffic.batch=8"),
    *("algorithm.fedstl.clusters=2", "training.local-steps=3"),
)

MOST_MB = 470
"""Memory of a client; it does not yet stay below that of traffic and ratings (test_memory.py)."""


def trained(desk: Desk, options: Iterable[str], run: str, clients: int = 0) -> dict[str, Any]:
    """Return the result of `fedloom up`, which ends without a fault; `clients` stay within their memory."""
    up = desk.up(*options, "--run-id", run)
    peaks = up.peaks_of_clients() if clients else {}
    assert up.end() == 0, up.error()
    assert len(peaks) == clients
    assert max(peaks.values(), default=0) < MOST_MB
    desk.require_clean(up)
    return up.result()


def test_a_federation_of_sensors_trains_the_model_of_a_simulation(desk: Desk) -> None:
    sets = [word for option in SMALL for word in ("--set", option)]
    options = ("--method", "fedstl", "--data", "demo:0-4", "--clients", "2", "--rounds", "2", "--seed", "3", *sets)
    result = trained(desk, [*options, "--no-alone"], "roads")
    assert (result["method"], result["task"], result["status"]) == ("fedstl", "traffic", "completed")
    assert {"mse", "rho_trace", "teacher_mse", "profile_mse", "truth_rho_trace"} <= result["metrics"].keys()
    metrics = result["metrics"]
    assert metrics["teacher_rho_trace"] == metrics["rho_trace"] < 1, "the teacher goes the calibrated share of the way"
    assert desk.rounds("roads")[-1]["clusters"].keys() == {"client-0", "client-1"}

    simulated = desk.simulate(*options)
    assert simulated["model_sha256"] == result["model_sha256"]
    assert simulated["metrics"] == pytest.approx(result["metrics"], rel=1e-9)


def test_a_federation_of_raters_trains_the_model_of_a_simulation(desk: Desk) -> None:
    """The paper's model with its private embedding, on ratings that arrive over the rounds."""
    made = ("--method", "fedavg", "--task", "ratings", "--data", "demo:0-24", "--clients", "2", "--rounds", "2")
    options = (*made, "--seed", "3", "--set", "model=paper", "--set", "tasks.ratings.arrival=online", "--patience", "0")
    result = trained(desk, [*options, "--no-alone"], "films")
    assert (result["task"], result["model"], result["status"]) == ("ratings", "paper", "completed")
    baselines = {"rmse_local_mean", "rmse_prior_mean", "rmse_half", "f1_all_liked"}
    assert {"rmse", "mae", "f1"} | baselines <= result["metrics"].keys()

    simulated = desk.simulate(*options)
    assert simulated["model_sha256"] == result["model_sha256"]
    assert simulated["metrics"] == pytest.approx(result["metrics"], rel=1e-9)


def test_a_federation_of_visitors_trains_the_model_of_a_simulation(desk: Desk) -> None:
    words = "--task sessions --method fedga --data demo:0-24 --clients 2 --rounds 2 --seed 3 --patience 20"
    options = words.split()
    result = trained(desk, [*options, "--no-alone"], "shop", clients=2)
    assert (result["method"], result["task"], result["status"]) == ("fedga", "sessions", "completed")
    assert {"hr20", "mrr20", "ndcg20", "loss"} <= result["metrics"].keys()
    assert desk.rounds("shop")[-1]["loss"] < desk.rounds("shop")[0]["loss"]
    assert desk.rounds("shop")[-1]["server"].keys() >= {"rate_p5", "rate_p95"}

    assert desk.simulate(*options)["model_sha256"] == result["model_sha256"]

    items = json.loads((desk.folder / "runs" / "shop" / "catalogue.json").read_text())["items"]
    clicks = f"{items[0]}, {items[3]}"
    recommended = json.loads(desk.finish("recommend", "--run", "shop", "--session", clicks, "--top", "4", "--json").out)
    assert len(recommended) == 4
    assert {entry["item"] for entry in recommended} <= set(items)

    typo = desk.finish("recommend", "--run", "shop", "--session", items[0] + "x", code=3)
    assert f"did you mean '{items[0]}'" in typo.error


def test_four_markets_train_and_a_fifth_adapts_their_model(desk: Desk) -> None:
    """Train the scorer by FedAvg."""
    options = ("--task", "markets", "--method", "fedavg", "--data", "demo:0-4", "--clients", "4", "--rounds", "1")
    result = trained(desk, options, "shops", clients=4)
    assert (result["task"], result["method"], result["status"]) == ("markets", "fedavg", "completed")
    assert {"mrr20", "ndcg20", "walk_mrr20", "degree_mrr20"} <= result["metrics"].keys()

    late = ("--task", "markets", "--data", "demo:4-5", "--name", "late", "--state-dir", "state")
    desk.finish("join", "--adapt", "shops", *late)

    query = ("--data", "demo", "--market", "isles", "--item", "P0007", "--top", "3")
    answered = desk.finish("recommend", *query, "--json")
    items: list[dict[str, object]] = json.loads(answered.out.splitlines()[-1])
    assert len(items) == 3
    assert all(entry["title"] for entry in items)
