"""What the page says of forecasts, from runs that never happened."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from markupsafe import Markup

from deploy.report.run import RunRecord, read
from deploy.tasks.traffic.figures import MOST_ROWS, assignments, before_and_after, by_round
from deploy.tasks.traffic.sections import clusters, is_forecaster, learning, teaching

MakeRun = Callable[..., Path]


@pytest.fixture
def history(fake_forecasts: MakeRun) -> RunRecord:
    return read(fake_forecasts())


def test_error_and_obedience_by_round_with_everything_beside_it(history: RunRecord) -> None:
    found = learning([history])
    assert [(f["title"], f["arrow"]) for f in found["figures"]] == [
        ("Mean squared error", "↓"),
        ("Rule satisfaction, traces", "↑"),
    ]
    words = re.findall(r"<text[^>]*>([^<]*)</text>", found["figures"][0]["svg"])
    assert {"student", "cluster model", "teacher", "profile", "round"} <= set(words)
    assert found["table"]["title"] == "All 21 metrics"
    assert "best" not in found["note"]


def test_the_test_round_is_no_point_of_the_curves(history: RunRecord) -> None:
    assert history.tested
    assert history.series("mse") == (list(range(1, 8)), [1 / r for r in range(1, 8)])
    assert not re.search(r">[1-9]0<", by_round([history], "mse", "profile_mse", "profile")), (
        "50 is that of the last round"
    )


def test_of_several_runs_students_and_teachers_are_drawn_in_the_run_s_colour(fake_forecasts: MakeRun) -> None:
    histories = [read(fake_forecasts("a")), read(fake_forecasts("b", method="fedavg", rounds=5))]
    assert "Dotted: their teachers" in learning(histories)["note"]
    assert learning(histories)["table"] is None
    svg = by_round(histories, "mse", "profile_mse", "profile")
    assert svg.count("stroke: var(--series-1)") == svg.count("stroke: var(--series-2)") == 2
    assert len(teaching(histories)["figures"]) == 3
    assert [f["title"] for f in clusters(histories)["figures"]] == ["Assignments of a"]
    assert clusters(histories)["table"] is None


def test_each_client_is_a_ring_a_dot_and_a_dash(history: RunRecord) -> None:
    assert history.result
    svg = before_and_after(history.result.clients, "mse", "profile_mse", "profile", lower=True)
    drawn = re.findall(r"<use [^>]*(?:fill|stroke): (var\(--[\w-]+\))", svg)
    assert len(drawn) >= 3 * 6
    assert ElementTree.fromstring(svg).attrib["aria-label"] == "mse per client before and after the teacher"


def test_who_is_with_whom_and_how_that_moved(history: RunRecord) -> None:
    found = clusters([history])
    assert found["figures"][0]["caption"] == "Clients changed their cluster 2 times, for the last time in round 4."
    assert found["table"]["header"] == ["Cluster", "Clients", "mse", "teacher mse", "ρ.trace", "Who"]
    assert [[Markup(cell).striptags() for cell in row] for row in found["table"]["rows"]] == [
        ["0", "1", "0.1000", "0.0900", "0.500", "client-0"],
        ["1", "4", "0.4250", "0.3825", "0.500", "client-1, client-3, client-4, client-5"],
        ["2", "1", "0.3000", "0.2700", "0.500", "client-2"],
    ]


def test_the_map_has_a_bar_for_every_stay(history: RunRecord) -> None:
    svg = assignments(history)
    bars = re.findall(r"<path d=\"[^\"]+\"[^>]*style=\"fill: var\(--series-\d\)", svg)
    assert len(bars) == 6 + 2
    assert re.findall(r">(cluster \d)<", svg) == ["cluster 0", "cluster 1", "cluster 2"]
    assert not re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", svg)


def test_of_very_many_clients_some_are_drawn(fake_forecasts: MakeRun) -> None:
    svg = assignments(read(fake_forecasts(clients=200, rounds=3)))
    assert len(re.findall(r"style=\"fill: var\(--series-\d\)", svg)) == MOST_ROWS


def test_nothing_is_said_of_other_tasks(fake_run: MakeRun, fake_forecasts: MakeRun) -> None:
    rules = [read(fake_run(rounds=3))]
    assert not is_forecaster(rules)
    assert learning(rules) == teaching(rules) == clusters(rules) == {}
    plain = read(fake_forecasts(method="fedavg"))
    assert clusters([plain]) == {}
    assert "cluster model" not in learning([plain])["figures"][0]["svg"]
