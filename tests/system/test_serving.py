"""An exported model answers as `fedloom recommend` and `fedloom forecast` do."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.data.read import read_all
from tests.support.exported_runs import DATA, ask, fedloom

pytestmark = pytest.mark.system


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]], name: str, score: str) -> None:
    """Compare names in order, and scores."""
    assert [one["what"] for one in found] == [one[name] for one in wanted]
    assert [one["score"] for one in found] == pytest.approx([one[score] for one in wanted], abs=1e-5)
    assert found


def test_rules_are_those_of_recommend(export: Callable[..., Path]) -> None:
    homes = read_all("rules", DATA["rules"])
    home, types = homes.units[1], homes.vocabulary.entities
    devices = [{"id": f"{d.name}", "type": types[d.entity]} for d in home.devices]
    parts = [homes.vocabulary.relations[r].split(" → ") for *_, r in home.rules.tolist()]
    rules = [
        {"trigger": devices[i]["id"], "state": state, "action": action, "device": devices[j]["id"]}
        for (i, j, _), (state, action) in zip(home.rules.tolist(), parts, strict=True)
    ]
    path = export("rules")
    wanted = fedloom("recommend", "--run", "rules", "--data", DATA["rules"], "--user", home.name)
    same(ask(path, {"devices": devices[::-1], "rules": rules}), wanted, "rule", "score")
    same(ask(path, {"user": home.name}, DATA["rules"]), wanted, "rule", "score")


def test_next_items_are_those_of_recommend(export: Callable[..., Path]) -> None:
    visitor = read_all("sessions", DATA["sessions"]).units[2]
    names = read_all("sessions", DATA["sessions"]).vocabulary.items
    clicks = [names[c] for c in visitor.sessions[0][:3]]
    words = ("recommend", "--run", "sessions", "--data", DATA["sessions"], "--session", ",".join(clicks))
    path = export("sessions")
    same(ask(path, {"clicks": clicks}), fedloom(*words), "item", "score")
    with_history = fedloom(*words, "--user", visitor.name)
    same(ask(path, {"clicks": clicks, "user": visitor.name}, DATA["sessions"]), with_history, "item", "score")


def test_a_personal_export_has_the_visitor_s_history_and_is_private(export: Callable[..., Path]) -> None:
    visitor = read_all("sessions", DATA["sessions"]).units[2]
    path = export("sessions", "--data", DATA["sessions"], "--user", visitor.name)
    wanted = fedloom("recommend", "--run", "sessions", "--data", DATA["sessions"], "--user", visitor.name)
    same(ask(path, {}), wanted, "item", "score")
    for file in (path, path.with_name("model-card.md"), path.with_name("model-card.json")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "do not hand on" in path.with_name("model-card.md").read_text("utf-8")


def test_products_are_those_of_recommend(export: Callable[..., Path]) -> None:
    raters = read_all("ratings", DATA["ratings"])
    rater = raters.units[3]
    path = export("ratings")
    wanted = fedloom("recommend", "--run", "ratings", "--data", DATA["ratings"], "--user", rater.name)
    own = {raters.vocabulary.items[i]: value for i, value in zip(rater.items, rater.ratings.tolist(), strict=True)}
    same(ask(path, {"ratings": own}), wanted, "product", "rating")


def test_companions_are_those_of_recommend(export: Callable[..., Path]) -> None:
    markets = read_all("markets", DATA["markets"])
    market, item = markets.units[0], markets.vocabulary.items[5]
    words = ("--data", DATA["markets"], "--market", market.name)
    path = export("markets", *words)
    wanted = fedloom("recommend", "--run", "markets", *words, "--item", item)
    same(ask(path, {"item": item}), wanted, "item", "score")


def test_forecasts_are_those_of_forecast(export: Callable[..., Path]) -> None:
    sensors = read_all("traffic", DATA["traffic"])
    sensor, step = sensors.units[0], sensors.vocabulary.step_seconds
    times = sensor.times(step).astype("datetime64[s]").astype(str).tolist()
    seen = zip(times, sensor.values[:, 0].tolist(), sensor.observed[:, 0].tolist(), strict=True)
    readings = [[time, value if there else None] for time, value, there in seen]
    path = export("traffic")
    wanted = fedloom("forecast", "--run", "traffic", "--data", DATA["traffic"], "--site", sensor.name)["rows"]
    found = ask(path, {"readings": readings})
    assert [row["time"] for row in found] == [row["time"] for row in wanted]
    for name in ("forecast", "corrected", "low", "high"):
        assert [row[name] for row in found] == pytest.approx([row[name] for row in wanted], rel=1e-5)
