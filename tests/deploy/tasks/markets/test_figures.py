"""Bars of each market, and dots by the size of markets with strokes to the random walk."""

import re
from dataclasses import replace

import numpy as np
import pytest

from deploy.federation.runs import Origin
from deploy.pages.view import RunRecord, read
from deploy.tasks.markets.figures import MAX_NAMED, bars, sizes
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


FOUR = {"in": (10, 0.8, 0.2), "jp": (100, 0.6, 0.4), "uk": (1000, 0.4, 0.4), "us": (10000, 0.5, 0.6)}
"""Market -> training pairs, MRR of the model and of the random walk."""


def measured_by_size(
    history: RunRecord, markets: dict[str, tuple[int, float, float]] = FOUR, **options: str
) -> RunRecord:
    assert history.result is not None
    clients = {
        name: ClientResult(examples=pairs, metrics={"mrr20": mrr, "walk_mrr20": walk, "degree_mrr20": walk / 2})
        for name, (pairs, mrr, walk) in markets.items()
    }
    config = {**history.config, "task": "markets", "method": "fedavg", **options}
    return replace(history, config=config, result=replace(history.result, clients=clients))


def dots(svg: str) -> list[tuple[float, float]]:
    """Return positions of the markers in points from the upper left; those of the legend come first."""
    marker = r'<use xlink:href="#m\w+" x="([\d.]+)" y="([\d.]+)" style="fill: var'
    return [(float(x), float(y)) for x, y in re.findall(marker, svg)]


def test_each_market_is_drawn_at_its_pairs_and_its_metrics(of: RunRecord) -> None:
    [figure] = sizes([measured_by_size(of)])
    assert (figure["title"], figure["arrow"]) == ("MRR @20 by size of market", "↑")
    assert figure["caption"].endswith("strokes: its gain over random walk.")
    assert 'aria-label="MRR @20 of each market by its training pairs"' in figure["svg"]
    walk, model = (np.array(dots(figure["svg"])[k : k + 4]) for k in (2, 6))
    np.testing.assert_array_equal(walk[:, 0], model[:, 0])
    np.testing.assert_allclose(np.diff(model[:, 0]), model[1, 0] - model[0, 0], rtol=1e-4, err_msg="a decade each")
    heights = np.array([[m, w] for _, m, w in FOUR.values()])
    drawn = np.column_stack([model[:, 1], walk[:, 1]])
    slope = np.polyfit(heights.ravel(), drawn.ravel(), 1)
    assert slope[0] < 0
    np.testing.assert_allclose(np.polyval(slope, heights), drawn, atol=1e-3)
    assert all(f">{name}<" in figure["svg"] for name in ("model", "random walk", *FOUR))
    assert bars([measured_by_size(of)])["figures"][-1] == figure


def test_several_runs_are_drawn_without_strokes(of: RunRecord) -> None:
    [figure] = sizes([measured_by_size(of), measured_by_size(of, method="pfgnn")])
    assert all(f">{name}<" in figure["svg"] for name in ("fedavg", "pfgnn", "random walk"))
    assert "strokes" not in figure["caption"]
    assert len(dots(figure["svg"])) == 3 * 4 + 3


def test_popularity_is_the_baseline_of_held_out_items(of: RunRecord) -> None:
    [figure] = sizes([measured_by_size(of, FOUR, **{"tasks.markets.protocol": "cold"})])
    assert ">popularity<" in figure["svg"]
    assert ">random walk<" not in figure["svg"]


def test_many_markets_have_no_names(of: RunRecord) -> None:
    many = {f"land{k}": (10 * k, 0.5, 0.4) for k in range(1, MAX_NAMED + 2)}
    [figure] = sizes([measured_by_size(of, many)])
    assert "land" not in figure["svg"]
    assert not any(np.isnan(np.ravel(dots(figure["svg"]))))


@pytest.mark.parametrize(
    ("markets", "options"),
    [
        ({name: (9, mrr, walk) for name, (_, mrr, walk) in FOUR.items()}, {}),
        ({"uk": FOUR["uk"], "jp": (0, 0.1, 0.1)}, {}),
        (FOUR, {"privacy.unit": "record"}),
    ],
    ids=["alike", "one", "noisy"],
)
def test_equal_or_noised_sizes_have_no_figure(
    of: RunRecord, markets: dict[str, tuple[int, float, float]], options: dict[str, str]
) -> None:
    assert sizes([measured_by_size(of, markets, **options)]) == []
