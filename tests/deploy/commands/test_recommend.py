"""Command `recommend`: choice of the run, and products for a rater."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from client.tasks.lists import LEARNT
from common.config.parse import flatten, parse
from common.errors import ConfigError, DataError
from common.models import parameters
from common.options import Scalar
from common.tasks.registry import TASKS, demo_vocabulary
from deploy.cli.app import app
from deploy.commands.recommend import find_answering
from deploy.federation.runs import find_run, newest
from deploy.simulation.grid import simulate
from deploy.tasks.registry import DEPLOY_TASKS
from server.record.folder import RunDirectory
from tests.deploy.pages.test_summary import RESULT
from tests.support.build import task_model
from tests.support.exports import untrained


@pytest.fixture(scope="module", params=["default", "paper"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of six raters."""
    folder = tmp_path_factory.mktemp("runs")
    flat = {"method": "fedavg", "task": "ratings", "model": request.param, "rounds": 1, "run-id": "films"}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("ratings", "demo:0-6"), folder)
    return folder


def recommend(*words: str) -> Result:
    return CliRunner().invoke(app, ["recommend", "--data", "demo:0-6", *words])


def test_unrated_products_are_listed_with_the_rater_s_mean(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    done = recommend("--user", "rater-00004", "--top", "3", "--json")
    assert done.exit_code == 0, done.exception
    products = json.loads(done.stdout)
    ratings = [film["rating"] for film in products]
    assert len(products) == 3
    assert ratings == sorted(ratings, reverse=True)
    assert 0 < ratings[-1] <= ratings[0] <= 5
    assert len({film["own_mean"] for film in products}) == 1

    shown = recommend("--user", "rater-00004", "--top", "3").stdout
    assert all(film["product"] in shown for film in products)
    assert f"{products[0]['own_mean']:.2f}" in shown


def test_titles_beside_the_data_are_shown(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    first, second = read_all("ratings", "demo:0-6").vocabulary.items[:2]
    (tmp_path / "ml.inter").write_text(f"user_id:token\titem_id:token\trating:float\nann\t{first}\t4\n")
    (tmp_path / "ml.item").write_text(f"item_id:token\tmovie_title:token_seq\n{second}\tHigh Noon\n")
    (tmp_path / "stock.txt").write_text(second)
    query = ["recommend", "--data", str(tmp_path), "--only", str(tmp_path / "stock.txt")]
    [film] = json.loads(CliRunner().invoke(app, [*query, "--json"]).stdout)
    assert (film["product"], film["title"]) == (second, "High Noon")
    assert "High Noon" in CliRunner().invoke(app, query).stdout


def test_an_unknown_user_is_answered_with_close_names(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    done = recommend("--user", "rater-4")
    assert isinstance(done.exception, DataError)
    assert "no user 'rater-4' among its 6 users; did you mean 'rater-0000" in str(done.exception)


@pytest.fixture
def several(here: Path) -> Path:
    """Store finished runs from old to new: two of sessions, one of ratings and rules; then a failed one."""
    tasks: dict[str, str] = {"clicks": "sessions", "shop": "sessions", "films": "ratings", "homes": "rules"}
    for age, (run, task) in enumerate((*tasks.items(), ("torn", tasks["shop"]))):
        finished(here / "runs", run, task, age)
    return here / "runs"


def finished(runs: Path, run: str, task: str, age: int) -> None:
    options: dict[str, Scalar] = {"method": "fedavg", "task": task, "run-id": run}
    folder = RunDirectory(runs, run)
    folder.create(flatten(parse(options)), json.loads(demo_vocabulary(task).to_json()))
    folder.write_result(replace(RESULT, run=run, task=task, status="failed" if run == "torn" else "completed"))
    os.utime(folder.path / "result.json", (1e9 + age, 1e9 + age))


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize(
    ("options", "run"),
    [({"session"}, "shop"), ({"session", "user"}, "shop"), ({"user"}, "homes"), (set[str](), "homes")],
)
def test_the_newest_run_that_accepts_all_options_answers(options: set[str], run: str) -> None:
    assert find_answering("", options)[0].path.name == run


@pytest.mark.usefixtures("several")
def test_without_a_suitable_run_the_message_says_what_to_train() -> None:
    refused = recommend("--item", "P0001").exception
    assert isinstance(refused, ConfigError)
    assert "no completed markets run in " in str(refused)
    assert str(refused).endswith("`fedloom up --task markets`")
    with pytest.raises(ConfigError, match="no completed traffic run"):
        newest(["traffic"])


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize(
    ("run", "option", "message"),
    [
        ("homes", "session", "--session does not apply to run 'homes' (task rules); use --user or --diverse"),
        ("films", "item", "--item does not apply to run 'films' (task ratings); use --user or --seen"),
        (
            "shop",
            "market",
            "--market does not apply to run 'shop' (task sessions); use --user or --session",
        ),
    ],
)
def test_an_option_that_does_not_apply_to_the_named_run_is_refused(run: str, option: str, message: str) -> None:
    refused = recommend("--run", run, f"--{option}", "x").exception
    assert isinstance(refused, ConfigError)
    assert str(refused) == message
    assert find_answering(run, {"user"})[0].path.name == run


@pytest.mark.usefixtures("several")
def test_options_that_no_run_accepts_together_are_refused() -> None:
    refused = recommend("--session", "sea waders", "--item", "P0001").exception
    assert isinstance(refused, ConfigError)
    assert str(refused) == "--item does not apply to run 'homes' (task rules); use --user or --diverse"


def test_a_run_is_found_by_name_and_by_any_folder(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = (several / "films").rename(tmp_path / "elsewhere" / "copy")
    monkeypatch.chdir(moved)
    for name in (str(moved), "../copy", "."):
        assert find_run(name).path == moved
    assert find_run("shop").path == several / "shop"
    with pytest.raises(ConfigError, match="films"):
        find_run("films")


NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}


def finish(task: str, run: str, options: dict[str, Scalar]) -> None:
    """Store a finished run whose model is far worse than the baseline."""
    config = parse({"method": "fedavg", "task": task, "run-id": run, "rounds": 1, **options})
    vocabulary = demo_vocabulary(task)
    folder = RunDirectory(Path("runs"), run)
    folder.create(flatten(config), json.loads(vocabulary.to_json()))
    model = {
        name: a + np.float32(9 * name.endswith("bias"))
        for name, a in parameters(task_model(config, vocabulary)).items()
    }
    folder.save_model(model, {"method": "fedavg", "round": "1"})
    folder.write_result(replace(RESULT, task=task, run=run))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "task", "options", "baseline", "is_validated"),
    [
        ("recommend", "sessions", {"model": "paper", "tasks.sessions.hidden": 4}, "own history", False),
        ("forecast", "traffic", {"tasks.traffic.hidden": 3}, "own ridge regression", True),
    ],
)
def test_the_baseline_answers_with_noise_and_without_where_validation_data_prefer_it(
    command: str, task: str, options: dict[str, Scalar], baseline: str, is_validated: bool
) -> None:
    def answer(*words: str) -> tuple[str, bool]:
        done = CliRunner().invoke(app, [command, "--data", "demo:0-3", "--json", *words])
        assert done.exit_code == 0, done.exception
        return done.stdout, f"{baseline} answers" in done.stderr.replace("\n", " ")

    finish(task, "noised", options | NOISE)
    (own, is_own), (chosen, by_own) = answer(), answer("--checkpoint", "final")
    finish(task, "exact", options)
    exact, without_noise = answer()
    assert (is_own, by_own, without_noise) == (True, False, is_validated)
    assert own != chosen
    assert (own.replace("noised", "exact") == exact) is is_validated


@pytest.mark.parametrize("task", ["rules", "sessions"])
def test_the_baseline_shows_only_what_the_client_has_used(task: str) -> None:
    run = untrained({"task": task, "method": "fedavg", "model": "paper"}, "demo:0-9")
    query = dict.fromkeys(("user", "diverse", "session", "test", "exclude", "only", "seen"), "")
    answering = DEPLOY_TASKS[task].answer
    assert answering is not None
    for unit in run.read("").units:
        asked = {**query, "user": unit.name}
        own = answering(replace(run, baseline=lambda _: next(iter(TASKS[task].baselines))), asked, 5)
        assert all(row["why"] != LEARNT for row in own.rows)
        assert len(own.notes) == 1 + len(answering(run, asked, 5).notes)
        assert own.rows or own.empty
