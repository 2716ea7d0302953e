"""The sessions task as a person uses it: a federation of processes, a simulation, recommendations by name."""

import json

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system


def test_a_federation_learns_sessions_and_ends_in_the_model_of_a_simulation(desk: Desk) -> None:
    options = ("--task", "sessions", "--data", "demo:0-24", "--clients", "2", "--rounds", "3", "--seed", "3")
    up = desk.up(*options, "--run-id", "shop")
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["method"], result["task"], result["status"]) == ("fedga", "sessions", "completed")
    assert {"hr20", "mrr20", "ndcg20", "loss"} <= result["metrics"].keys()
    assert desk.rounds("shop")[-1]["loss"] < desk.rounds("shop")[0]["loss"]
    assert desk.rounds("shop")[-1]["server"].keys() >= {"rate_p5", "rate_p95"}

    alone = desk.start("simulate", *options, "--together", "1", "--run-id", "alone", "--json")
    assert alone.end() == 0, alone.error()
    assert alone.result()["model_sha256"] == result["model_sha256"]

    items = json.loads((desk.folder / "runs" / "shop" / "catalogue.json").read_text())["items"]
    told = desk.start("recommend", "--run", "shop", "--session", f"{items[0]}, {items[3]}", "--top", "4", "--json")
    assert told.end() == 0, told.error()
    found = json.loads(told.out.read_text())
    assert len(found) == 4
    assert {entry["item"] for entry in found} <= set(items)

    typo = desk.start("recommend", "--run", "shop", "--session", items[0] + "x")
    assert typo.end() == 1
    assert f"did you mean '{items[0]}'" in typo.error()
