"""Markets task: four markets train, a late-joining market adapts the model, and an item is queried."""

import json

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system
MOST_MB = 470
"""Memory of a client; it does not yet stay below that of traffic and ratings (test_memory.py)."""


def test_four_markets_train_and_a_fifth_adapts_their_model(desk: Desk) -> None:
    """Train the scorer by FedAvg."""
    options = ("--task", "markets", "--method", "fedavg", "--data", "demo:0-4", "--clients", "4", "--rounds", "1")
    up = desk.up(*options, "--run-id", "shops")
    peaks = up.peaks_of_clients()
    assert len(peaks) == 4
    assert max(peaks.values()) < MOST_MB
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    result = up.result()
    assert (result["task"], result["method"], result["status"]) == ("markets", "fedavg", "completed")
    assert {"mrr20", "ndcg20", "walk_mrr20", "degree_mrr20"} <= result["metrics"].keys()

    late = ("--task", "markets", "--data", "demo:4-5", "--name", "late", "--state-dir", "state")
    desk.finish("join", "--adapt", "shops", *late)

    query = ("--data", "demo", "--market", "isles", "--item", "P0007", "--top", "3")
    answered = desk.finish("recommend", *query, "--json")
    items: list[dict[str, object]] = json.loads(answered.out.splitlines()[-1])
    assert len(items) == 3
    assert all(entry["title"] for entry in items)
