"""The markets task as a person uses it: four markets train, a fifth comes late, and somebody asks what goes with an item."""

import json

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system


def test_four_markets_train_and_a_fifth_takes_what_came_of_it(desk: Desk) -> None:
    """What nobody asked for otherwise: the scorer, with others' counts under noise."""
    up = desk.up("--task", "markets", "--data", "demo:0-4", "--clients", "4", "--rounds", "2", "--run-id", "shops")
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["task"], result["method"], result["status"]) == ("markets", "fedavg", "completed")
    assert {"mrr20", "ndcg20", "walk_mrr20", "degree_mrr20", "shared_mrr20"} <= result["metrics"].keys()
    assert "(ε = 8, δ = 1e-05)-private for each of its users" in result["privacy"]["counts"]

    late = desk.start(
        "join", "--adapt", "shops", "--task", "markets", "--data", "demo:4-5", "--name", "late", "--state-dir", "state"
    )
    assert late.end() == 0, late.error()

    asked = ("--data", "demo", "--market", "isles", "--item", "P0007", "--top", "3")
    told = desk.start("recommend", *asked, "--json")
    assert told.end() == 0, told.error()
    found: list[dict[str, object]] = json.loads(told.out.read_text().splitlines()[-1])
    assert len(found) == 3
    assert all(one["title"] for one in found)
