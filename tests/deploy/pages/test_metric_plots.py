"""Figures: well-formed SVG, no fixed colors, all data drawn."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from common.metrics import EXAMPLES
from deploy.pages.figures import MAX_DOTS, client_spread, hit_rates, metric_curves, per_round, step_rates
from deploy.pages.view import measure, read
from tests.support.run_folders import MakeRun


@pytest.fixture
def svgs(fake_run: MakeRun) -> dict[str, str]:
    histories = [read(fake_run("a", rounds=9)), read(fake_run("b", rounds=5, seed=1, status="running"))]
    return {
        "loss": metric_curves(histories, measure("loss")),
        "auc": metric_curves(histories, measure("auc")),
        "hits": hit_rates(histories),
        "clients": client_spread(histories, measure("mr0")),
        "examples": client_spread(histories, EXAMPLES),
        "seconds": per_round(histories, "Seconds", lambda r: r.seconds),
        "rates": step_rates([*histories, read(fake_run("c", method="fedga", rounds=6))]),
    }


def test_figures_are_xml_with_an_accessible_name(svgs: dict[str, str]) -> None:
    names = [ElementTree.fromstring(svg).attrib["aria-label"] for svg in svgs.values()]
    assert names[:2] == ["Loss per round", "AUC per round"]


def test_every_color_follows_the_theme(svgs: dict[str, str]) -> None:
    for name, svg in svgs.items():
        fixed = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", svg))
        assert not fixed, f"{name} has fixed colors {fixed}"
    assert "var(--series-1)" in svgs["auc"]
    assert "var(--series-2)" in svgs["auc"]
    assert "var(--series-2)" not in svgs["clients"], "the second run has no clients to show yet"


def test_figures_fetch_nothing_and_keep_text(svgs: dict[str, str]) -> None:
    for svg in svgs.values():
        assert not re.search(r'(href|src)="(?!#)', svg)
        assert "<text" in svg
        assert "font-family" not in svg
        assert "<metadata" not in svg


def test_the_same_run_results_in_the_same_figure(fake_run: MakeRun) -> None:
    history = read(fake_run("a", rounds=4))
    assert metric_curves([history], measure("auc")) == metric_curves([history], measure("auc"))


@pytest.mark.parametrize(("clients", "dots"), [(4, 4), (1000, MAX_DOTS)])
def test_one_dot_per_client_up_to_a_limit(fake_run: MakeRun, clients: int, dots: int) -> None:
    svg = client_spread([read(fake_run("a", rounds=2, clients=clients))], measure("auc"))
    drawn = re.findall(r"<use [^>]*fill: var\(--series-1\)", svg)
    assert len(drawn) == dots


@pytest.mark.parametrize("method", ["fedrule", "fedga"])
@pytest.mark.filterwarnings("error")
def test_a_run_of_one_round_is_a_dot_with_its_value(fake_run: MakeRun, method: str) -> None:
    history = read(fake_run("one", method=method, rounds=1))
    _, [value] = history.series("auc")
    assert f">{value:.3f}</text>" in metric_curves([history], measure("auc"))
    assert f">{history.rounds[0].seconds:.3g}</text>" in per_round([history], "Seconds", lambda r: r.seconds)
    assert "<svg" in step_rates([history])
