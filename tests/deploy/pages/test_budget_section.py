"""Privacy budget section, from simulated run folders."""

import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from common.config.parse import flatten, parse
from common.options import Scalar
from common.privacy.accounts import gdp_of
from deploy.pages.budget import budget, plan_of
from deploy.pages.report import render
from deploy.pages.view import RunRecord, read
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from tests.support.run_folders import MakeRun


def planned(root: Path, run_id: str, method: str = "bgtplanner", rounds: int = 12, **options: Scalar) -> Path:
    """Write a ratings run with noise: even costs, rewards of ±0.001, and predictions after stage 1.

    Predictions are half of the rewards. Its RMSE is 0.2 − 0.001·round, and it ends a round early.
    """
    own = {"algorithm.bgtplanner.arms": 2, "algorithm.bgtplanner.t0": 2} if method == "bgtplanner" else {}
    flat = {"method": method, "task": "ratings", "rounds": rounds, "privacy.unit": "client", "privacy.epsilon": 5.0}
    run = RunDirectory(root, run_id)
    run.create(flatten(parse({**flat, **own, **options})), {})
    for r in range(1, rounds):
        values = {"cost": 0.03, "left": 1 - r / rounds, "active": 2.0, "retired": 0.0, "reward": 1e-3 * (-1) ** r}
        values |= {"arm": 1.0, "p_arm": 0.5} if method == "bgtplanner" else {}
        if method == "bgtplanner" and r > 6:  # K·T₀ rounds of stage 1a and T₀ of 1b
            values |= {"predicted": 0.5, "predicted_sd": 0.25, "lambda": 1.5, "lambda_max": 2.0}
        rest = {"seconds": 1.0, "answered": 2, "asked": 2, "bytes_down": 1, "bytes_up": 1}
        run.append(
            RoundEvent(round=r, rounds=rounds, loss=math.nan, metrics={"rmse": 0.2 - 1e-3 * r}, server=values, **rest)
        )
    return run.path


@pytest.fixture
def fake_planned(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Return `planned`; each run is in a new folder."""
    return lambda run_id="r1", **options: planned(tmp_path_factory.mktemp("runs"), run_id, **options)


@pytest.fixture
def history(fake_planned: MakeRun) -> RunRecord:
    return read(fake_planned())


def test_a_plan_is_read_from_the_run_s_folder(history: RunRecord) -> None:
    plan = plan_of(history, "bgt", "blue")
    assert plan is not None
    assert (plan.account, plan.total) == ("gdp", pytest.approx(gdp_of(5.0, 1e-5)))
    assert plan.stages == ("1a",) * 4 + ("1b",) * 2 + ("2",) * 5
    assert plan.scale == 1e-3
    assert plan.left == pytest.approx([100 * (1 - r / 12) for r in range(1, 12)])


def test_t0_is_lowered_in_a_short_run_as_the_planner_does(fake_planned: MakeRun) -> None:
    """Stage 1 takes at most half of the run: of eleven rounds three for two arms, so T₀ is 1."""
    plan = plan_of(read(fake_planned(rounds=11)), "bgt", "blue")
    assert plan is not None
    assert plan.stages[:4] == ("1a", "1a", "1b", "2")


def test_one_run_s_figures_and_table(history: RunRecord) -> None:
    shown = budget([history])
    assert [(f["title"], f["arrow"]) for f in shown["figures"]] == [
        ("Cost per round, μ²/2", ""),
        ("Remaining budget, %", ""),
        ("Reward per round, RMSE", "↑"),
        ("λ, price of budget", ""),
        ("RMSE by budget spent", "↓"),
    ]
    assert shown["note"] == (
        "Every client has a budget of μ²/2 0.629 in this run, which corresponds to ε = 5, δ = 1e-05, in Gaussian DP (μ²/2). "
        "Spent evenly it is μ²/2 0.0524 per round."
    )
    names = [ElementTree.fromstring(f["svg"]).attrib["aria-label"] for f in shown["figures"]]
    assert names[2] == "Reward per round, observed and predicted"
    words = re.findall(r"<text[^>]*>([^<]*)</text>", shown["figures"][0]["svg"])
    assert {"1a", "1b", "2", "round"} <= set(words)
    assert not any(re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", f["svg"]) for f in shown["figures"])

    table = shown["table"]
    assert table["header"] == [
        *("Round", "Stage", "Arm", "Probability", "Cost, μ²/2"),
        *("Remaining, %", "Predicted reward", "Reward", "RMSE", "λ"),
        *("Enough budget", "Exhausted"),
    ]
    first, last = table["rows"][0], table["rows"][-1]
    assert first == ["1", "1a", "1", "0.50", "0.03", "91.7", "–", "-0.001", "0.1990", "–", "2", "0"]
    assert last == ["11", "2", "1", "0.50", "0.03", "8.3", "+0.0005 ± 0.0005", "-0.001", "0.1890", "1.5", "2", "0"]


def test_a_plan_without_predictions_shows_none(fake_planned: MakeRun) -> None:
    shown = budget([read(fake_planned(method="uniform"))])
    assert [f["title"] for f in shown["figures"]] == [
        "Cost per round, μ²/2",
        "Remaining budget, %",
        "Reward per round, RMSE",
        "RMSE by budget spent",
    ]
    assert shown["figures"][2]["caption"] == "Dot: improvement by the round."
    assert shown["table"]["header"][:4] == ["Round", "Cost, μ²/2", "Remaining, %", "Reward"]


def test_several_runs_have_their_own_colors_and_costs_of_different_accounts_are_shares(
    fake_run: MakeRun, fake_planned: MakeRun
) -> None:
    plain, noisy = read(fake_run(rounds=3)), read(fake_planned("b"))
    laplace = read(fake_planned("c", method="uniform", **{"privacy.mechanism": "laplace"}))
    shown = budget([plain, noisy, laplace])
    assert shown["figures"][0]["title"] == "Cost per round, % of the budget"
    assert shown["note"] == "Budget of each client: bgtplanner μ²/2 0.629; uniform ε 5."
    assert shown["table"] is None
    drawn = shown["figures"][0]["svg"]
    assert "var(--series-1)" not in drawn, "the first run has no noise"
    assert {"2", "3"} == set(re.findall(r"var\(--series-(\d)\)", drawn))


def test_exhausted_clients_are_shown_if_there_are_any(fake_planned: MakeRun) -> None:
    path = fake_planned()
    lines = (path / "metrics.jsonl").read_text()
    (path / "metrics.jsonl").write_text(lines.replace('"retired":0.0', '"retired":1.0'))
    assert budget([read(path)])["figures"][-1]["title"] == "Clients with enough budget"


def test_a_planner_rewarded_by_the_norm_is_labeled(fake_planned: MakeRun) -> None:
    shown = budget([read(fake_planned(**{"algorithm.bgtplanner.reward": "norm"}))])
    titles = [f["title"] for f in shown["figures"]]
    assert "Reward per round, Norm of the update" in titles
    assert "RMSE by budget spent" not in titles


def test_runs_without_noise_or_of_another_release_have_no_section(fake_run: MakeRun, fake_planned: MakeRun) -> None:
    assert budget([read(fake_run(rounds=3))]) == {}
    path = fake_planned()
    config = (path / "config.toml").read_text()
    (path / "config.toml").write_text(config + '"privacy.of-tomorrow" = 1\n')
    assert budget([read(path)]) == {}


def test_the_page_of_a_run_with_noise(fake_planned: MakeRun, tmp_path: Path) -> None:
    page = render([fake_planned()], tmp_path / "r.html").read_text("utf-8")
    assert "<h2>Privacy budget</h2>" in page
    assert "Dashed: training" not in page
    assert "All 11 rounds" in page
    assert "draw new noise" in page
