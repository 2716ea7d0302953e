"""Sessions task: processes train the same model as a simulation, which recommends items by name."""

import json

import pytest

from tests.system.desk import Desk

pytestmark = pytest.mark.system
MOST_MB = 470
"""Memory of a client; it does not yet stay below that of traffic and ratings (test_memory.py)."""


def test_a_federation_of_visitors_trains_the_model_of_a_simulation(desk: Desk) -> None:
    words = "--task sessions --method fedga --data demo:0-24 --clients 2 --rounds 2 --seed 3 --patience 20"
    options = words.split()
    up = desk.up(*options, "--run-id", "shop", "--no-alone")
    peaks = up.peaks_of_clients()
    assert up.end() == 0, up.error()
    assert len(peaks) == 2
    assert max(peaks.values()) < MOST_MB
    desk.require_clean(up)
    result = up.result()
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
