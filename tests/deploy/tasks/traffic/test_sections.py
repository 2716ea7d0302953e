"""Forecast sections of the report page, from simulated run folders."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from deploy.pages.view import RunRecord, read
from deploy.tasks.traffic.sections import before_and_after, by_round, learning, teaching
from tests.support.run_folders import MakeRun


@pytest.fixture
def history(fake_forecasts: MakeRun) -> RunRecord:
    return read(fake_forecasts())


def test_error_and_satisfaction_by_round_beside_all_metrics(history: RunRecord) -> None:
    section = learning([history])
    assert [(f["title"], f["arrow"]) for f in section["figures"]] == [
        ("Mean squared error", "↓"),
        ("Rule satisfaction, traces", "↑"),
    ]
    words = re.findall(r"<text[^>]*>([^<]*)</text>", section["figures"][0]["svg"])
    assert {"student", "cluster model", "teacher", "profile", "round"} <= set(words)
    assert section["table"]["title"] == "All 21 metrics"
    assert "best" not in section["note"]


def test_the_test_round_is_no_point_of_the_curves(history: RunRecord) -> None:
    assert history.tested
    assert history.series("mse") == (list(range(1, 8)), [1 / r for r in range(1, 8)])
    svg = by_round([history], "mse", "profile_mse", "profile")
    assert not re.search(r">[1-9]0<", svg), "the last round has an error of 50"


def test_students_and_teachers_have_the_color_of_their_run(fake_forecasts: MakeRun) -> None:
    histories = [read(fake_forecasts("a")), read(fake_forecasts("b", method="fedavg", rounds=5))]
    assert "Dotted: their teachers" in learning(histories)["note"]
    assert learning(histories)["table"] is None
    svg = by_round(histories, "mse", "profile_mse", "profile")
    assert svg.count("stroke: var(--series-1)") == svg.count("stroke: var(--series-2)") == 2
    assert len(teaching(histories)["figures"]) == 3


def test_each_client_is_a_ring_a_dot_and_a_dash(history: RunRecord) -> None:
    assert history.result
    svg = before_and_after(history.result.clients, "mse", "profile_mse", "profile", lower=True)
    drawn = re.findall(r"<use [^>]*(?:fill|stroke): (var\(--[\w-]+\))", svg)
    assert len(drawn) >= 3 * 6
    assert ElementTree.fromstring(svg).attrib["aria-label"] == "mse per client before and after the teacher"


def test_other_tasks_have_no_sections(fake_run: MakeRun, fake_forecasts: MakeRun) -> None:
    rules = [read(fake_run(rounds=3))]
    assert learning(rules) == teaching(rules) == {}
    plain = read(fake_forecasts(method="fedavg"))
    assert "cluster model" not in learning([plain])["figures"][0]["svg"]
