"""`recommend` after `join --adapt`: the market's own part of the model, where it is of this run and of these data."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from client.inference.stored_models import SINCE, newest_stored
from client.state import DiskStore
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.reader import read_markets
from client.tasks.markets.data.writer import write_markets
from client.tasks.markets.inference import companions, item_named
from common.arrays import Arrays
from common.config.parse import parse
from common.errors import ConfigError
from common.options import Scalar
from common.tasks.markets.counts import KEYS
from deploy.cli.app import app
from deploy.commands.runs import stored_options
from deploy.simulation import simulate
from server.artifacts import RunDirectory

OWN = "by the personalized model of client late of run shops"
SHARED = "by the shared model of run shops"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run in an empty folder with a newcomer's table, with runs and state below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    late = read_markets("demo:5-6")
    write_markets(tmp_path / "late.csv", late.units, late.vocabulary)
    return tmp_path


def finished(method: str, model: str, **options: Scalar) -> None:
    """A run of two markets, adapted to a third."""
    small = {"tasks.markets.width": 16, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    flat = {"method": method, "task": "markets", "model": model, "rounds": 2, "run-id": "shops", **small, **options}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("markets", "demo:3-5"), Path("runs").resolve())
    joined = command("join", "--adapt", "shops", "--task", "markets", "--data", "late.csv", "--name", "late")
    assert joined.exit_code == 0, joined.exception


def command(*words: str, state: str = "state") -> Result:
    return CliRunner().invoke(app, [*words, "--state-dir", state])


def recommended(*words: str, data: str = "late.csv", state: str = "state") -> tuple[list[tuple[str, float]], str]:
    """Items with their scores, and the line that says by which model."""
    done = command("recommend", "--data", data, "--item", ITEM, "--json", *words, state=state)
    assert done.exit_code == 0, done.exception
    return [(one["item"], one["score"]) for one in json.loads(done.stdout)], done.stderr.replace("\n", " ")


def of_run() -> tuple[RunDirectory, Arrays]:
    folder = RunDirectory(Path("runs").resolve(), "shops")
    return folder, folder.load_model()[0]


def expected(model: Arrays) -> list[tuple[str, float]]:
    """What the newcomer's market gets of a model, without the command."""
    folder, _ = of_run()
    found = companions(parse(stored_options(folder)), GOODS, model, LATE.units[0], item_named(ITEM, GOODS), 10)
    return [(one.item, pytest.approx(one.score, rel=1e-5)) for one in found]


LATE: Markets = read_markets("demo:5-6")
GOODS = LATE.vocabulary
ITEM = GOODS.items[int(LATE.units[0].ratings[0, 1])]


def test_what_the_market_made_its_own_ranks(here: Path) -> None:
    finished("pfgnn", "paper")
    [folder] = (here / "state" / "late").iterdir()
    own = {name: t.numpy() for name, t in DiskStore(folder).load("shops").groups["own.after"].items()}
    _, trained = of_run()
    assert not np.array_equal(own["phi.mean"], trained["phi.mean"])

    found, said = recommended()
    assert found == expected(own)
    assert found != expected(trained)
    assert OWN in said
    found, said = recommended(state="nowhere")
    assert found == expected(trained)
    assert SHARED in said


def test_copies_of_the_data_are_the_same_and_other_data_are_not(here: Path) -> None:
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
    found, said = recommended("--run", str(folder.path))
    assert found == expected(of_run()[1])
    assert SHARED in said
    refused = command("recommend", "--data", "late.csv", "--item", ITEM, "--client", "late").exception
    assert isinstance(refused, ConfigError)
    assert "its model is of another run 'shops' (other model or catalogue)" in str(refused)
    unknown = command("recommend", "--data", "late.csv", "--item", ITEM, "--client", "eve").exception
    assert isinstance(unknown, ConfigError)
    assert "--client eve: no such client stores a finished markets run" in str(unknown)


def test_where_clients_keep_nothing_the_shared_model_is_said_to_rank() -> None:
    finished("fedavg", "default", **{"tasks.markets.count-offset": True})
    found, said = recommended()
    assert found == recommended(state="nowhere")[0]
    assert "by the shared model, without parameters of client late, of run shops" in said


def test_an_own_scorer_goes_with_the_sums_over_markets() -> None:
    finished("local", "default", **{"tasks.markets.count-offset": True})
    stored = newest_stored("markets", "late.csv", "shops", [Path("state")])
    assert stored is not None
    _, trained = of_run()
    np.testing.assert_array_equal(stored.statics[KEYS], trained[KEYS])
    assert not np.array_equal(stored.model["scorer.weight"], stored.shared["scorer.weight"])
    found, said = recommended()
    assert found == expected({**stored.model, **stored.statics})
    assert OWN in said
