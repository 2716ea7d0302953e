"""Sessions task: processes train the same model as a simulation, which recommends items by name."""

import json

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system


def test_a_federation_of_visitors_trains_the_model_of_a_simulation(desk: Desk) -> None:
    options = (
        "--task",
        "sessions",
        "--data",
        "demo:0-24",
        "--clients",
        "2",
        "--rounds",
        "3",
        "--seed",
        "3",
        "--patience",
        "20",
    )
    up = desk.up(*options, "--run-id", "shop")
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["method"], result["task"], result["status"]) == ("fedga", "sessions", "completed")
    assert {"hr20", "mrr20", "ndcg20", "loss"} <= result["metrics"].keys()
    assert desk.rounds("shop")[-1]["loss"] < desk.rounds("shop")[0]["loss"]
    assert desk.rounds("shop")[-1]["server"].keys() >= {"rate_p5", "rate_p95"}

    simulated = desk.start("simulate", *options, "--together", "1", "--run-id", "alone", "--json")
    assert simulated.end() == 0, simulated.error()
    assert simulated.result()["model_sha256"] == result["model_sha256"]

    items = json.loads((desk.folder / "runs" / "shop" / "catalogue.json").read_text())["items"]
    query = desk.start("recommend", "--run", "shop", "--session", f"{items[0]}, {items[3]}", "--top", "4", "--json")
    assert query.end() == 0, query.error()
    recommended = json.loads(query.out.read_text())
    assert len(recommended) == 4
    assert {entry["item"] for entry in recommended} <= set(items)

    typo = desk.start("recommend", "--run", "shop", "--session", items[0] + "x")
    assert typo.end() == 3
    assert f"did you mean '{items[0]}'" in typo.error()
