"""Formulas in `properties` and `forecast`, and in words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.config.parse import flatten
from common.config.parse import parse as parse_options
from common.logic.parser import parse
from common.models import parameters
from deploy.cli.app import app
from deploy.tasks.traffic.words import describe_formula
from server.record.folder import RunDirectory
from tests.deploy.pages.test_summary import RESULT
from tests.support.build import task_model
from tests.support.hourly import HOURLY

pytestmark = pytest.mark.usefixtures("here")

ROOF = "G[0,5] (volume <= 1200) & F[6,23] (volume >= 450)"


def command(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--state-dir", "state"])


def properties(table: Path, formula: str, *words: str) -> Result:
    sets = "--set", "tasks.traffic.property=formula", "--set", f"tasks.traffic.formula={formula}"
    return command("properties", "--data", str(table), "--site", "south", *sets, *words)


def test_properties_judge_past_days_by_a_formula(table: Path) -> None:
    done = properties(table, ROOF)
    assert done.exit_code == 0, done.exception
    lines = done.stdout.splitlines()
    assert lines[0] == "south: formula for every sensor (reading 0 is midnight, 60 minutes a step)"
    assert [line.strip().split("  ")[0] for line in lines[2:4]] == ROOF.split(" & ")
    assert lines[2].endswith("  at every reading between 00:00 and 06:00 the volume is at most 1200")
    assert lines[5].startswith("satisfied on ")
    assert "complete days of its training part" in lines[5]
    assert lines[6].startswith("worst on 2024-01-")


def test_an_inferred_property_is_shown_beside_the_tightest_ones(table: Path) -> None:
    words = "--set", "tasks.traffic.property=eventualities", "--set", "tasks.traffic.window-width=12"
    done = command("properties", "--data", str(table), "--site", "south", *words)
    assert done.exit_code == 0, done.exception
    lines = done.stdout.splitlines()
    assert lines[0] == "south: property of its training part (reading 0 is midnight, 60 minutes a step)"
    assert lines[2].startswith("  F[0,11] (volume >= ")
    assert lines[5].startswith("satisfied on 100 % of 17 complete days of its training part")
    assert lines[-4] == "tightest properties of its past"
    assert all("slack 0." in line for line in lines[-3:])


def test_properties_as_json(table: Path) -> None:
    values = json.loads(properties(table, "G[0,23] (volume >= 1)", "--json").stdout)
    assert (values["formula"], values["anchor"], values["held"]) == ("G[0,23] (volume >= 1)", "midnight", 1.0)
    assert (values["past_days"], values["later_days"], values["held_later"]) == (17, 4, 1.0)
    never = json.loads(properties(table, "G[0,23] (volume >= 9999)", "--json").stdout)
    assert never["held"] == 0.0
    assert never["worst_robustness"] < -8000


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("G[0,5](flow <= 1)", "column 8: the federation measures volume; the formula names 'flow'"),
        ("G[0,5](volume <= )", "column 18: expected 'number', found ')'"),
        ("G[0,24] (volume <= 1)", "column 1: the formula has 25 steps, but a forecast has 24"),
        ("volume <= 1 & volume >= 2", "column 15: no trace can satisfy this formula"),
    ],
)
def test_a_formula_without_sense_is_refused_with_its_place(table: Path, formula: str, message: str) -> None:
    done = properties(table, formula)
    assert done.exit_code != 0
    assert message in str(done.exception) + done.stderr


@pytest.mark.parametrize("anchor", ["midnight", "forecast"])
def test_a_forecast_is_corrected_by_the_formula_of_its_run(table: Path, anchor: str) -> None:
    finish(anchor)
    done = command("forecast", "--data", str(table), "--site", "south", "--horizon", "3", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert [row["corrected"] for row in rows] == pytest.approx([200.0] * 3)
    assert all(row["marked"] and row["low"] is None for row in rows)


def test_a_forecast_from_another_hour_says_why_it_is_not_corrected(table: Path) -> None:
    finish("midnight")
    lines = table.read_text().splitlines()
    table.write_text("\n".join(line for line in lines if not line.startswith("2024-01-21T2")) + "\n")
    done = command("forecast", "--data", str(table), "--site", "south")
    assert done.exit_code == 0, done.exception
    assert (
        "not corrected: the formula judges forecasts that begin at midnight, and this one begins at 20:00"
        in done.stdout
    )


def finish(anchor: str) -> None:
    """Write a finished run under a formula that no day of the data satisfies."""
    config = parse_options(
        {
            **{"method": "fedavg", "task": "traffic", "run-id": "r", "model": "paper", "tasks.traffic.hidden": 3},
            **{"tasks.traffic.property": "formula", "tasks.traffic.anchor": anchor},
            "tasks.traffic.formula": "G[0,23] (volume <= 200)",
        }
    )
    folder = RunDirectory(Path("runs"), "r")
    folder.create(flatten(config), json.loads(HOURLY.to_json()))
    folder.save_model(parameters(task_model(config, HOURLY)), {"method": "fedavg"})
    folder.write_result(replace(RESULT, task="traffic", run="r"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("volume <= 3", "the volume is at most 3 at midnight"),
        ("G[8,8] (volume > 2)", "at the reading of 08:00 the volume is above 2"),
        (
            "G[0,9] (volume >= 5 -> F[1,2] (cars < 1.5))",
            "at every reading between 00:00 and 10:00 if the volume is at least 5, then at some reading from 1 to 2 later"
            " the cars is below 1.5",
        ),
        (
            "!(F[0,1] (volume <= 1))",
            "it is not true that at some reading between 00:00 and 02:00 the volume is at most 1",
        ),
        (
            "(volume < 9) U[2,3] (cars > 1)",
            "the volume is below 9 up to some reading between 02:00 and 04:00 where the cars is above 1",
        ),
        ("volume <= 1 | G[1,1] (volume >= 2)", "either the volume is at most 1 at midnight or at the reading of 01:00"),
    ],
)
def test_formulas_in_words(text: str, words: str) -> None:
    assert describe_formula(parse(text), 3600, at_midnight=True).startswith(words)


def test_without_a_clock_readings_are_counted() -> None:
    phi = parse("G[2,3] (volume <= 3 & cars >= 1) & F[5,5] (cars <= 1) & cars <= 2")
    assert describe_formula(phi, 1, at_midnight=False) == (
        "at every reading from 2 to 3 the volume is at most 3 and the cars is at least 1, and at reading 5 the cars is at"
        " most 1, and the cars is at most 2 at the first reading"
    )
