"""Report page: content for one run and several, without external resources."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup

from common.tasks.rules.vocabulary import RuleCatalogue
from deploy.pages.figures import MOST_ROWS, assignments, svg
from deploy.pages.report import clusters, render
from deploy.pages.view import RunRecord, read
from deploy.serving.export import make_card
from server.record.folder import EVENTS_FILE, RunDirectory
from tests.support.run_folders import MakeRun


class Outline(HTMLParser):
    """Headings and figures of a page, and its unclosed tags."""

    VOID = frozenset({"meta", "link", "br", "img", "path", "use", "rect"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.figures = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.figures += tag == "figure"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def html(paths: list[Path], tmp_path: Path) -> str:
    return render(paths, tmp_path / "out" / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def page(fake_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of one completed run."""
    return html([fake_run(rounds=24)], tmp_path_factory.mktemp("report"))


def test_one_run(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    assert "; ".join(outline.headings) == (
        "fedrule on rules; Result; Learning; Length of lists; Clients; Rounds; Privacy; Configuration; Reproduction"
    )
    assert outline.figures == 4 + 1 + 4 + 4
    for text in (
        "24 of 24 rounds in 10.1 s",
        "No differential privacy",
        "9f86d081",
        "algorithm.fedrule.lam",
        "flwr 1.39.0",
    ):
        assert text in page
    assert re.search(r"client-3</th><td>did not answer</td><td>12–15<", page)
    assert "fedloom up --method fedrule --task rules --rounds 24 --seed 0" in page


def test_the_page_has_no_external_resources(page: str) -> None:
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)|url\((?!#)|@import', page)
    assert set(re.findall(r"https?://[^\"'\s]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_several_runs_are_compared(fake_run: MakeRun, tmp_path: Path) -> None:
    page = html(
        [
            fake_run("a", rounds=5, clients=6),
            fake_run("b", method="fedavg", rounds=5, limit=0.9, clients=6),
            fake_run("c", status="running"),
        ],
        tmp_path,
    )
    outline = Outline(page)
    assert outline.headings[:2] == ["3 runs compared", "Results"]
    row = re.search(r"AUC <span class=\"arrow\">↑</span></th>(.*?)</tr>", page, re.S)
    assert row
    assert row[1].count("<b>") == 1
    assert 'class="differs"' in page
    assert "fedrule, seed 0" not in page, "method and seed are equal, so run ids are shown"
    assert all(f"<b>{run}</b>" in page for run in "abc")


def test_the_server_s_step_is_shown_where_a_method_adapts_it(fake_run: MakeRun, tmp_path: Path) -> None:
    assert "Server step" in Outline(html([fake_run("a", method="fedga", rounds=5), fake_run("b")], tmp_path)).headings
    assert "Server step" not in Outline(html([fake_run("b")], tmp_path)).headings


def test_a_forecaster_s_page(fake_forecasts: MakeRun, tmp_path: Path) -> None:
    page = html([fake_forecasts()], tmp_path)
    outline = Outline(page)
    assert outline.open == []
    assert "; ".join(outline.headings[1:8]) == (
        "Result; Learning; Forecasts by round; Clients before and after the teacher; Clusters; Clients; Rounds"
    )
    assert outline.figures == 1 + 2 + 2 + 1 + 1 + 4
    assert 2 < page.count('class="card') <= 1 + 5, "the cards and their container"
    assert "in round 7, the best on validation data" in page
    assert "On validation data; the last round" in page
    assert "Rule satisfaction, windows, cluster model" in page, "in the table of all metrics"


def test_the_legend_and_the_note_name_only_what_is_drawn(page: str, fake_run: MakeRun, tmp_path: Path) -> None:
    assert "Solid: evaluation. Dashed: training." in page
    assert "in round 20, the best by Hit rate @20 of the shown list" in page
    folder = RunDirectory(fake_run("closed", rounds=2, status="running").parent, "closed")
    first, *rounds = (json.loads(line) for line in (folder.path / EVENTS_FILE).read_text("utf-8").splitlines())
    solved = [{**event, "loss": None, "metrics": event["metrics"] if event["round"] == 2 else {}} for event in rounds]
    (folder.path / EVENTS_FILE).write_text("".join(f"{json.dumps(event)}\n" for event in (first, *solved)), "utf-8")
    closed = html([folder.path], tmp_path)
    assert "Dashed: training" not in closed
    assert "Global model after the only evaluated round." in closed
    assert "Dashed: training" in html([folder.path, fake_run("trained", rounds=3)], tmp_path)


@pytest.mark.parametrize("status", ["running", "failed"])
def test_a_failed_or_interrupted_run(fake_run: MakeRun, tmp_path: Path, status: str) -> None:
    page = html([fake_run(rounds=6, status=status)], tmp_path)
    assert Outline(page).open == []
    assert ("1 of 4 clients answered, 2 are needed" in page) == (status == "failed")
    assert ('<span class="status unfinished">' in page) == (status == "running")


def test_sizes_that_masks_hide_are_in_no_page_and_no_card(fake_run: MakeRun, tmp_path: Path) -> None:
    path = fake_run(rounds=1)
    result = RunDirectory(path.parent, path.name).result()
    assert result
    masked = replace(result, privacy=replace(result.privacy, trust="helpers"))
    names = RuleCatalogue(entities=("Door",), relations=("opens → turn on",))
    cards = [make_card(one, names, "", (), personal=False)["data"] for one in (result, masked)]
    assert ["training record" in card for card in cards] == [True, False]
    assert "Number of training records" in html([path], tmp_path)
    config = path / "config.toml"
    config.write_text('"privacy.trust" = "helpers"\n' + config.read_text("utf-8"), "utf-8")
    page = html([path], tmp_path)
    assert "Number of training records" not in page
    assert ">Examples<" not in page


def test_the_only_round_is_a_whole_number_on_the_axis() -> None:
    drawn = svg(lambda axes: axes.plot([2], [0.5], "o"), "one", x="round")
    assert re.findall(r"<text[^>]*>([^<]+)</text>", drawn)[0] == "2"


def test_a_run_that_has_only_started(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "new")
    run.create({"method": "fedrule", "task": "rules"}, {})
    assert Outline(html([run.path], tmp_path)).headings == ["fedrule on rules", "Configuration", "Reproduction"]


def test_texts_of_clients_are_escaped(fake_run: MakeRun, tmp_path: Path) -> None:
    path = fake_run("r1", rounds=20, status="running")
    lines = (path / "metrics.jsonl").read_text().replace("is not allowed by its policy", "<script>alert(1)</script>")
    (path / "metrics.jsonl").write_text(lines)
    page = html([path], tmp_path)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


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
