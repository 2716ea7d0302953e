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
from common.errors import ConfigError, DataError
from common.models import parameters
from common.tasks.traffic.properties import POOLED
from deploy.cli.app import app
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
