"""Commands `properties` and `forecast`."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.inference.stored_models import SINCE
from common.arrays import Arrays
from common.config.parse import flatten
from common.config.parse import parse as parse_options
from common.errors import ConfigError, DataError
from common.logic.parser import parse
from common.models import parameters
from common.tasks.traffic.properties import POOLED
from deploy.cli.app import app
from deploy.tasks.traffic.words import describe_formula
from server.record.folder import RunDirectory
from tests.deploy.pages.test_summary import RESULT
from tests.support.build import task_model
from tests.support.hourly import HOURLY, configured, take_part

pytestmark = pytest.mark.usefixtures("here")


def finish(method: str, run: str, task: str = "traffic", statics: Arrays | None = None) -> None:
    config = configured(method, run)
    folder = RunDirectory(Path("runs"), run)
    folder.create(flatten(config) | {"task": task}, json.loads(HOURLY.to_json()))
    folder.save_model({**parameters(task_model(config, HOURLY)), **(statics or {})}, {"method": method})
    folder.write_result(replace(RESULT, task=task, run=run))


def command(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--state-dir", "state"])


def test_properties_need_no_run(table: Path) -> None:
    done = command("properties", "--data", str(table), "--site", "south")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("south: property of its training part (calibrated ranges, 60 minutes a step)\n")
    assert "G[0," in done.stdout
    assert "each tested without itself" in done.stdout


def test_the_kind_of_property_can_be_set(table: Path) -> None:
    done = command("properties", "--data", str(table), "--set", "tasks.traffic.property=paper", "--json")
    values = json.loads(done.stdout)
    assert (values["site"], values["property"]) == ("north", "paper")
    assert {r["days"] for r in values["ranges"]} == {"every day"}
    assert "the first of 2 sensors" in done.stderr


def test_a_forecast_by_the_newest_traffic_run(table: Path, here: Path) -> None:
    finish("fedavg", "r1")
    finish("fedrule", "later", "rules")
    done = command("forecast", "--data", str(table), "--site", "south", "--horizon", "3")
    assert done.exit_code == 0, done.exception
    lines = done.stdout.splitlines()
    assert lines[0] == "south by run r1"
    assert [line[:20] for line in lines[3:6]] == [f"Mon 2024-01-22 0{hour}:00" for hour in range(3)]
    assert lines[-1] == "figure: forecast-south.svg"
    assert (here / "forecast-south.svg").read_bytes().startswith(b"<?xml")


def test_a_stored_personalized_model_comes_first(table: Path) -> None:
    finish("fedrep", "r1")
    take_part(Path("state"), table, "fedrep", "r0")
    stored = command("forecast", "--data", str(table), "--json")
    fitted = command("forecast", "--data", str(table), "--json", "--run", "r1")
    assert "by the model that their client stored of run r0" in stored.stderr
    assert "run r1: its clients have private layers" in fitted.stderr
    assert [json.loads(done.stdout)["run"] for done in (stored, fitted)] == ["r0", "r1"]


def test_the_forecast_starts_at_the_end_of_data_with_new_rows(table: Path) -> None:
    take_part(Path("state"), table, "fedrep", "r0")
    rows = [f"2024-01-22T0{hour}:00,{site},500" for site in ("north", "south") for hour in range(3)]
    table.write_text(table.read_text() + "\n".join(rows) + "\n")
    done = command("forecast", "--data", str(table), "--site", "south", "--json", "--horizon", "1")
    assert f"client node{SINCE} stored of run r0" in done.stderr.replace("\n", " ")
    assert json.loads(done.stdout)["rows"][0]["time"] == "2024-01-22T03:00"


def test_a_client_is_found_by_its_name(table: Path) -> None:
    take_part(Path("state"), table, "fedavg", "r0", "ann")
    other = table.with_name("other.csv")
    other.write_text(table.read_text().replace("north", "east"))
    done = command("forecast", "--data", str(other), "--client", "ann", "--site", "east", "--json")
    assert json.loads(done.stdout)["run"] == "r0"
    with pytest.raises(ConfigError, match="--client eve: no such client stores a finished traffic run in state"):
        raise command("forecast", "--data", str(other), "--client", "eve").exception or AssertionError


def short(table: Path) -> Path:
    """Write the table's last eight days at one site."""
    lines = table.read_text().splitlines()
    new = table.with_name("new.csv")
    new.write_text("\n".join([lines[0], *lines[-8 * 24 :]]) + "\n")
    return new


def test_a_cold_start_client_adopts_the_property_of_similar_clients(table: Path) -> None:
    pooled = {name: np.full((1, 168, 1), end, np.float32) for name, end in zip(POOLED, (-9, 9), strict=True)}
    finish("fedstl", "r1", statics=pooled)
    new = short(table)
    done = command("properties", "--data", str(new), "--json")
    assert "with the property of similar clients of run r1" in done.stderr
    assert json.loads(done.stdout)["pooled"]
    lines = command("properties", "--data", str(new)).stdout.splitlines()
    assert lines[0].startswith("south: property of similar clients and of its own training part (calibrated ranges")
    assert any(line.startswith("pooled from similar clients of the federation") for line in lines)

    coming = command("forecast", "--data", str(new), "--json", "--run", "r1")
    assert json.loads(coming.stdout)["pooled"]
    assert not json.loads(command("properties", "--data", str(table), "--json").stdout)["pooled"]
    paper = command("properties", "--data", str(new), "--set", "tasks.traffic.property=paper", "--json")
    assert not json.loads(paper.stdout)["pooled"], "the run pooled properties of another kind"


def test_a_cold_start_client_without_a_run_has_its_own_property(table: Path) -> None:
    assert not json.loads(command("properties", "--data", str(short(table)), "--json").stdout)["pooled"]


def test_json_draws_a_figure_with_plot_only(table: Path, here: Path) -> None:
    finish("fedavg", "r1")
    done = command("forecast", "--data", str(table), "--json")
    assert json.loads(done.stdout)["plot"] == ""
    assert not list(here.glob("forecast-*"))
    done = command("forecast", "--data", str(table), "--json", "--plot", "new/day.png")
    assert json.loads(done.stdout)["plot"] == "new/day.png"
    assert (here / "new" / "day.png").exists()


def test_a_dead_sensor_is_reported(table: Path) -> None:
    finish("fedavg", "r1")
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:-8], *(line.rpartition(",")[0] + ",0" for line in lines[-8:])]) + "\n")
    done = command("forecast", "--data", str(table), "--site", "south")
    assert "its last 8 readings are all 0: the sensor seems dead or stuck" in done.stdout


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (("--horizon", "25"), ConfigError, "forecasts 24 steps, not 25"),
        (("--site", "sout"), DataError, "no sensor 'sout' among its 2 sensors; did you mean 'south'?"),
        (("--plot", "a.gif"), ConfigError, r"the suffix is none of .svg"),
        (("--plot", "sensors.csv/a.svg"), ConfigError, "name a file that may be written"),
        (("--run", "r7"), ConfigError, "no run 'r7'"),
        (("--run", "later"), ConfigError, "run 'later' is of task rules"),
    ],
)
def test_wrong_use_is_refused(table: Path, words: tuple[str, ...], kind: type[Exception], message: str) -> None:
    finish("fedavg", "r1")
    finish("fedrule", "later", "rules")
    with pytest.raises(kind, match=message):
        raise command("forecast", "--data", str(table), *words).exception or AssertionError


def test_without_a_run_the_message_says_what_to_train(table: Path) -> None:
    with pytest.raises(ConfigError, match="fedloom up --task traffic"):
        raise command("forecast", "--data", str(table)).exception or AssertionError


ROOF = "G[0,5] (volume <= 1200) & F[6,23] (volume >= 450)"


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
    finish_stated(anchor)
    done = command("forecast", "--data", str(table), "--site", "south", "--horizon", "3", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert [row["corrected"] for row in rows] == pytest.approx([200.0] * 3)
    assert all(row["marked"] and row["low"] is None for row in rows)


def test_a_forecast_from_another_hour_says_why_it_is_not_corrected(table: Path) -> None:
    finish_stated("midnight")
    lines = table.read_text().splitlines()
    table.write_text("\n".join(line for line in lines if not line.startswith("2024-01-21T2")) + "\n")
    done = command("forecast", "--data", str(table), "--site", "south")
    assert done.exit_code == 0, done.exception
    assert (
        "not corrected: the formula judges forecasts that begin at midnight, and this one begins at 20:00"
        in done.stdout
    )


def finish_stated(anchor: str) -> None:
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
