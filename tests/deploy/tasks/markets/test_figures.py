"""Bars of each market: metrics of every run and of the baselines."""

import re
from dataclasses import replace

import pytest

from deploy.federation.runs import Origin
from deploy.pages.view import RunRecord, read
from deploy.tasks.markets.figures import bars
from server.record.result import ClientResult
from tests.support.run_folders import MakeRun

MARKETS = {"uk": 0.6, "jp": 0.3}


@pytest.fixture
def of(fake_run: MakeRun) -> RunRecord:
    return read(fake_run(rounds=2))


def measured(history: RunRecord, method: str = "fedavg", **prefixes: float) -> RunRecord:
    """Return a markets run with metrics .6 and .3, and baselines that are given shares of it."""
    assert history.result is not None
    clients = {
        name: ClientResult(
            examples=9,
            metrics={f"{p}{key}": f * v for p, f in {"": 1.0, **prefixes}.items() for key in ("mrr20", "ndcg20")},
        )
        for name, v in MARKETS.items()
    }
    config = {**history.config, "task": "markets", "method": method}
    return replace(history, config=config, result=replace(history.result, clients=clients))


def heights(svg: str) -> list[float]:
    """Return the heights of the bars in points, in drawing order; figure and axes come before them."""
    corner = r"[\d.]+ ([\d.]+) \n"
    rectangles = re.findall(rf'<path d="M {corner}L {corner}L {corner}L {corner}', svg)
    return [float(base) - float(top) for base, _, top, _ in rectangles[2:]]


def test_each_market_has_a_bar_of_the_model_and_of_every_baseline(of: RunRecord) -> None:
    section = bars([measured(of, walk_=0.5, degree_=0.25)])
    assert [figure["title"] for figure in section["figures"]] == ["MRR @20", "NDCG @20"]
    svg = section["figures"][0]["svg"]
    assert all(name in svg for name in ("model", "random walk", "popularity", "uk", "jp"))
    assert "popularity and other markets" not in svg
    jp, uk = heights(svg)[:2]
    assert uk / jp == pytest.approx(2, rel=1e-3)
    assert [h / uk for h in heights(svg)[2:6]] == pytest.approx([0.25, 0.5, 0.125, 0.25], rel=1e-2)


def test_several_runs_stand_side_by_side(of: RunRecord) -> None:
    svg = bars([measured(of), measured(of, "pfgnn", walk_=0.5)])["figures"][0]["svg"]
    assert all(name in svg for name in ("fedavg", "pfgnn", "random walk"))
    assert "model" not in svg.replace("model<", "")
    assert len(heights(svg)) >= 6


def test_bars_have_the_names_of_the_clients_markets(of: RunRecord) -> None:
    launched = replace(measured(of), origin=Origin("up", "demo", 2, {"uk": "hills", "jp": "coast + cape"}))
    svgs = [figure["svg"] for figure in bars([launched])["figures"]]
    assert all(">hills<" in svg and ">coast + cape<" in svg and ">uk<" not in svg for svg in svgs)


def test_other_tasks_have_none(of: RunRecord) -> None:
    assert bars([of]) == {}
