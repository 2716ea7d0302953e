"""Command `recommend` after `join --adapt`: personalized models of the same run and the same data."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from client.inference.stored_models import SINCE, newest_stored
from client.state import DiskStore
from client.tasks.lists import two_digits
from client.tasks.markets.data.markets import Markets, write_markets
from client.tasks.markets.inference import companions, item_named
from common.arrays import Arrays
from common.config.parse import parse
from common.errors import ConfigError, DataError
from common.options import Scalar
from deploy.cli.app import app
from deploy.federation.runs import stored_options
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory

LATE: Markets = read_all("markets", "demo:5-6")

GOODS = LATE.vocabulary

ITEM = GOODS.items[int(LATE.units[0].ratings[0, 1])]

OWN = "by the personalized model of client late of run shops"

SHARED = "by the shared model of run shops"


@pytest.fixture(autouse=True)
def late_table(here: Path) -> None:
    """Write the table of a late-joining market."""
    write_markets(here / "late.csv", LATE)


def finished(method: str, model: str, **options: Scalar) -> None:
    """Simulate a run of two markets and adapt its model to a third."""
    small = {"tasks.markets.width": 16, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    flat = {"method": method, "task": "markets", "model": model, "rounds": 2, "run-id": "shops", **small, **options}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("markets", "demo:3-5"), Path("runs").resolve())
    joined = command("join", "--adapt", "shops", "--task", "markets", "--data", "late.csv", "--name", "late")
    assert joined.exit_code == 0, joined.exception


def command(*words: str, state: str = "state") -> Result:
    return CliRunner().invoke(app, [*words, "--state-dir", state])


def recommended(*words: str, data: str = "late.csv", state: str = "state") -> tuple[list[tuple[str, float]], str]:
    """Return items with their scores, and the message that names the model."""
    done = command("recommend", "--data", data, "--item", ITEM, "--json", *words, state=state)
    assert done.exit_code == 0, done.exception
    return [(entry["item"], entry["score"]) for entry in json.loads(done.stdout)], done.stderr.replace("\n", " ")


def of_run() -> tuple[RunDirectory, Arrays]:
    folder = RunDirectory(Path("runs").resolve(), "shops")
    return folder, folder.load_model()[0]


def expected(model: Arrays) -> list[tuple[str, float]]:
    """Return the items that a model ranks for the late-joining market, without the command."""
    folder, _ = of_run()
    ranked = companions(parse(stored_options(folder)), GOODS, model, LATE.units[0], item_named(ITEM, GOODS), 10)
    return [(entry.item, two_digits(entry.score)) for entry in ranked]


def test_the_personalized_model_ranks_items(here: Path) -> None:
    finished("pfgnn", "paper")
    [folder] = (path for path in (here / "state" / "late").iterdir() if path.is_dir())
    personal = {name: t.numpy() for name, t in DiskStore(folder).load("shops").groups["own.after"].items()}
    _, trained = of_run()
    assert not np.array_equal(personal["phi.mean"], trained["phi.mean"])

    ranked, message = recommended()
    assert ranked == expected(personal)
    assert ranked != expected(trained)
    assert OWN in message
    ranked, message = recommended(state="nowhere")
    assert ranked == expected(trained)
    assert SHARED in message


def test_copies_of_the_data_find_the_model_and_other_data_do_not(here: Path) -> None:
    finished("pfgnn", "paper")
    text = (here / "late.csv").read_text()
    (here / "copy.csv").write_text(text)
    (here / "other.csv").write_text(text.replace("cape", "bay"))
    assert OWN in recommended(data="copy.csv")[1]
    assert SHARED in recommended(data="other.csv")[1]
    assert OWN.replace("late", f"late{SINCE},") in recommended("--client", "late", data="other.csv")[1]
    (here / "late.csv").write_text(text + text.splitlines()[-1] + "\n")
    assert OWN.replace("late", f"late{SINCE},") in recommended()[1]


def test_a_run_of_the_same_name_is_another_run() -> None:
    finished("pfgnn", "paper")
    folder, trained = of_run()
    folder.save_model({name: a + np.float32(0.1) for name, a in trained.items()}, {})
    ranked, message = recommended("--run", str(folder.path))
    assert ranked == expected(of_run()[1])
    assert SHARED in message
    refused = command("recommend", "--data", "late.csv", "--item", ITEM, "--client", "late").exception
    assert isinstance(refused, ConfigError)
    assert "its model is of another run 'shops' (other model or catalogue)" in str(refused)
    unknown = command("recommend", "--data", "late.csv", "--item", ITEM, "--client", "eve").exception
    assert isinstance(unknown, ConfigError)
    assert "--client eve: no such client stores a finished markets run" in str(unknown)


def test_without_private_layers_the_shared_model_is_named() -> None:
    finished("fedavg", "default")
    ranked, message = recommended()
    assert ranked == recommended(state="nowhere")[0]
    assert "by the shared model, without parameters of client late, of run shops" in message


def test_a_personalized_scorer_is_the_clients_own() -> None:
    finished("local", "default")
    stored = newest_stored("markets", "late.csv", "shops", [Path("state")])
    assert stored is not None
    assert not np.array_equal(stored.model["scorer.weight"], stored.shared["scorer.weight"])
    ranked, message = recommended()
    assert ranked == expected(stored.model)
    assert OWN in message


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of three markets."""
    folder = tmp_path_factory.mktemp("runs")
    flat: dict[str, Scalar] = {"method": "fedavg", "task": "markets", "rounds": 1, "run-id": "shops"}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("markets", "demo:3-6"), folder)
    return folder


def recommend(*words: str) -> Result:
    return CliRunner().invoke(app, ["recommend", "--data", "demo:3-6", *words])


def test_items_with_titles_best_first(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    done = recommend("--market", "isles", "--item", "P0001", "--top", "3", "--json")
    assert done.exit_code == 0, done.exception
    items = json.loads(done.stdout)
    assert len(items) == 3
    assert all(entry["title"] for entry in items)
    scores = [entry["score"] for entry in items]
    assert scores == sorted(scores, reverse=True)
    shown = recommend("--market", "isles", "--item", "P0001", "--top", "3").stdout
    assert all(entry["item"] in shown for entry in items)
    assert "isles" in shown


def test_unknown_names_are_answered_with_close_ones(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    market = recommend("--market", "isle", "--item", "P0001").exception
    assert isinstance(market, DataError)
    assert "no market 'isle' among its 3 markets; did you mean 'isles'?" in str(market)
    item = recommend("--item", "P001").exception
    assert isinstance(item, DataError)
    assert "has no item 'P001'; did you mean 'P0" in str(item)
    nothing = recommend().exception
    assert isinstance(nothing, ConfigError)
    example = re.search(r"--item is missing; .* of market \S+ by its id or title, such as (P\d+)", str(nothing))
    assert example
    assert recommend("--item", example[1]).exit_code == 0
