"""Example packages, installed like third-party packages: listed, trained, reported and uninstalled."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.desk import NETWORK, ROOT, Desk

EXAMPLES = ("weather-task", "trimmed-mean-method", "sage-network")

pytestmark = pytest.mark.system

ACCEPTED = "privacy.accept-noise=true"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the packages into a folder; the environment of the tests is unchanged."""
    target = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*command, *(ROOT / "examples" / name for name in EXAMPLES)], check=True)
    return target


@pytest.fixture
def packaged(desk: Desk, installed: Path) -> Desk:
    """Return a desk with the packages installed."""
    desk.packages.append(installed)
    return desk


def test_examples_are_listed_with_their_package(packaged: Desk) -> None:
    for kind, name, package in (
        ("tasks", "weather", "fedloom-weather"),
        ("methods", "trimmedmean", "fedloom-trimmed-mean"),
        ("methods", "--model sage", "fedloom-sage"),
    ):
        listing = packaged.start(kind)
        assert listing.end() == 0, listing.error()
        [row] = [row for row in listing.out.read_text().splitlines() if name in row]
        assert package in row


def test_a_model_beats_the_last_reading_and_has_a_report(packaged: Desk) -> None:
    """Equal seeds train equal models: test_processes_train_both_examples_on_a_table."""
    run = packaged.start("simulate", "--task", "weather", "--method", "trimmedmean", "--no-alone", "--json")
    assert run.end() == 0, run.error()
    result = run.result()
    assert result["metrics"]["mse"] < 0.8 * result["metrics"]["last_mse"]
    assert "against 'last reading'" in result["verdict"]["text"]
    report = packaged.start("report", result["run"])
    assert report.end() == 0, report.error()
    page = (packaged.folder / "runs" / result["run"] / "report.html").read_text("utf-8")
    assert "Mean squared error" in page


def test_a_run_with_noise_stays_within_its_budget_and_answers_no_queries(packaged: Desk) -> None:
    noisy = packaged.start(
        "simulate", "--task", "weather", "--rounds", "3", "--epsilon", "10", "--set", ACCEPTED, "--no-alone", "--json"
    )
    assert noisy.end() == 0, noisy.error()
    privacy = noisy.result()["privacy"]
    assert (privacy["unit"], privacy["epsilon"]) == ("client", 10.0)
    assert 9 < privacy["epsilon_spent_max"] <= 10
    query = packaged.start("recommend", "--run", noisy.result()["run"])
    assert query.end() == 2
    assert "is of task weather, which answers no queries" in query.error()


def test_processes_train_both_examples_on_a_table(packaged: Desk) -> None:
    table = packaged.folder / "stations.csv"
    rows = [f"s{k},2024-01-{1 + h // 24:02} {h % 24:02}:00,{(h + k) % 24}" for k in range(6) for h in range(96)]
    table.write_text("\n".join(["Station,Time,temperature", *rows]) + "\n", "utf-8")
    options = ("--task", "weather", "--method", "trimmedmean", "--rounds", "3", "--clients", "3")
    options += ("--patience", "20", "--no-alone")
    up = packaged.up(*options, "--data", table)
    assert up.end() == 0, up.error()
    result = up.result()
    assert (result["task"], result["method"], len(result["clients"])) == ("weather", "trimmedmean", 3)
    simulated = packaged.start("simulate", *options, "--data", table, "--together", "1", "--json")
    assert simulated.end() == 0, simulated.error()
    assert simulated.result()["model_sha256"] == result["model_sha256"]


def test_uninstalled_examples_are_unknown_and_other_runs_are_unchanged(desk: Desk, installed: Path) -> None:
    unknown = desk.start("simulate", "--task", "weather")
    plain = desk.start("simulate", "--data", "demo:0-8", *NETWORK, "--rounds", "2", "--no-alone", "--json")
    assert unknown.end() == 2
    assert "unknown task 'weather'; installed: markets, ratings, rules, sessions, traffic" in unknown.error()
    desk.packages.append(installed)
    beside = desk.start("simulate", "--data", "demo:0-8", *NETWORK, "--rounds", "2", "--no-alone", "--json")
    assert (plain.end(), beside.end()) == (0, 0), plain.error()
    assert plain.result()["model_sha256"] == beside.result()["model_sha256"]
