"""Cluster section, from simulated run folders."""

import re

import pytest
from markupsafe import Markup

from deploy.pages.figures import MOST_ROWS, assignments
from deploy.pages.report import clusters
from deploy.pages.view import RunRecord, read
from tests.support.run_folders import MakeRun


@pytest.fixture
def history(fake_forecasts: MakeRun) -> RunRecord:
    return read(fake_forecasts())


def test_members_metrics_and_changes_of_clusters(history: RunRecord) -> None:
    section = clusters([history])
    assert section["figures"][0]["caption"] == "Clients changed their cluster 2 times, for the last time in round 4."
    assert section["table"]["header"] == ["Cluster", "Clients", "mse", "teacher mse", "satisfied", "Members"]
    assert [[Markup(cell).striptags() for cell in row] for row in section["table"]["rows"]] == [
        ["0", "1", "0.1000", "0.0900", "0.500", "client-0"],
        ["1", "4", "0.4250", "0.3825", "0.500", "client-1, client-3, client-4, client-5"],
        ["2", "1", "0.3000", "0.2700", "0.500", "client-2"],
    ]


def test_the_figure_has_a_bar_for_every_stay_in_a_cluster(history: RunRecord) -> None:
    svg = assignments(history)
    bars = re.findall(r"<path d=\"[^\"]+\"[^>]*style=\"fill: var\(--series-\d\)", svg)
    assert len(bars) == 6 + 2
    assert re.findall(r">(cluster \d)<", svg) == ["cluster 0", "cluster 1", "cluster 2"]
    assert not re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", svg)


def test_a_limited_number_of_clients_is_drawn(fake_forecasts: MakeRun) -> None:
    svg = assignments(read(fake_forecasts(clients=200, rounds=3)))
    assert len(re.findall(r"style=\"fill: var\(--series-\d\)", svg)) == MOST_ROWS


def test_each_clustered_run_has_a_figure(fake_forecasts: MakeRun) -> None:
    histories = [read(fake_forecasts("a")), read(fake_forecasts("b", method="fedavg", rounds=5))]
    assert [f["title"] for f in clusters(histories)["figures"]] == ["Assignments of a"]
    assert clusters(histories)["table"] is None


def test_runs_without_clusters_have_no_section(fake_run: MakeRun, fake_forecasts: MakeRun) -> None:
    assert clusters([read(fake_run(rounds=3))]) == clusters([read(fake_forecasts(method="fedavg"))]) == {}
