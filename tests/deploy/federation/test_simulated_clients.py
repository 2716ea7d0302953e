"""Clients of a resumed simulation are those of the run."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.config.parse import flatten, parse
from common.errors import ConfigError, DataError
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.cli.app import app
from deploy.cli.options import RunRequest
from deploy.federation.request import resolve, run_partition, with_catalogue
from deploy.federation.runs import Command, remember
from server.record.events import RoundEvent
from server.record.folder import RunDirectory


@pytest.fixture(autouse=True)
def runs(here: Path) -> Path:
    """Store a run that has begun."""
    config = flatten(parse({"method": "fedrule", "rounds": 3, "seed": 1, "run-id": "exact"}))
    RunDirectory(Path("runs"), "exact").create(config, json.loads(demo_catalogue().to_json()))
    return here / "runs"


def launch(run: str, command: Command, data: str, clients: int) -> RunDirectory:
    folder = RunDirectory(Path("runs"), run)
    remember(folder.path, command, data, clients)
    return folder


def test_a_simulation_continues_with_its_clients_and_demo_data() -> None:
    folder = launch("exact", "simulate", "demo:0-9", 3)
    assert run_partition(folder, "demo", None) == run_partition(folder, "demo:0-9", 3) == ("demo:0-9", 3)
    with pytest.raises(ConfigError, match="continues with its own --clients 3; remove --clients"):
        run_partition(folder, "demo", 2)
    for other in ("demo:0-8", "mine.csv"):
        with pytest.raises(ConfigError, match="continues with its own demo:0-9; remove --data"):
            run_partition(folder, other, None)


def test_a_simulation_of_own_data_needs_their_path_again() -> None:
    """No run stores the path of own data."""
    folder = launch("exact", "simulate", "mine.csv", 0)
    assert run_partition(folder, "mine.csv", None) == ("mine.csv", 0)
    text = "continues with its own data, whose path is not stored; name them with --data"
    with pytest.raises(ConfigError, match=text):
        run_partition(folder, "demo", None)
    with pytest.raises(ConfigError, match="its own --clients 0"):
        run_partition(folder, "mine.csv", 4)


def test_a_run_of_processes_is_no_simulation() -> None:
    with pytest.raises(ConfigError, match="was started by fedloom up; resume it with that command"):
        run_partition(launch("exact", "up", "demo", 4), "demo", None)


def test_a_run_without_a_launch_record_uses_the_given_partition() -> None:
    assert run_partition(RunDirectory(Path("runs"), "exact"), "demo:0-9", 3) == ("demo:0-9", 3)


def simulate(words: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *words.split()])


def test_simulate_resumes_with_the_clients_of_the_run(runs: Path) -> None:
    begun = simulate("--run-id short --data demo:0-6 --clients 2 --rounds 1 --method fedavg")
    assert begun.exit_code == 0, begun.exception
    resumed = simulate("--resume short --rounds 2")
    assert resumed.exit_code == 0, resumed.exception
    assert "run short: 2 clients in this process" in resumed.stderr
    rounds = [event for event in RunDirectory(runs, "short").events() if isinstance(event, RoundEvent)]
    assert [(event.round, event.answered) for event in rounds] == [(1, 2), (2, 2)]
    assert isinstance(simulate("--resume short --rounds 3 --clients 3").exception, ConfigError)


@pytest.mark.parametrize("noise", ["", "--method fedstl --epsilon 2"])
def test_a_run_without_a_record_to_train_on_does_not_start(noise: str, here: Path) -> None:
    Path("short.csv").write_text("time,v\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n")
    begun = simulate(f"--run-id empty --task traffic --data short.csv {noise}")
    assert isinstance(begun.exception, DataError)
    assert str(begun.exception) == "short.csv: no client has a record to train on; add records to the data"
    assert not Path("runs", "empty").exists()


def test_masked_sums_of_too_few_clients_do_not_start(here: Path) -> None:
    begun = simulate("--run-id few --task rules --data demo:0-12 --clients 4 --helpers 2")
    assert isinstance(begun.exception, ConfigError)
    assert "a masked sum needs 5 clients, the data make 4; raise --clients" in str(begun.exception)
    assert not Path("runs", "few").exists()


@pytest.mark.parametrize("task", ["rules", "sessions", "ratings", "markets"])
def test_a_run_with_clusters_completes_and_its_models_answer_no_stranger(task: str, runs: Path) -> None:
    done = simulate(f"--task {task} --method ifca --run-id groups --data demo:0-6 --clients 3 --rounds 1 --no-alone")
    assert done.exit_code == 0, done.exception
    assert "a model for each cluster of clients" in done.stderr.replace("\n", " ")


SHOP = "\n".join(
    ["user,session,item,timestamp"]
    + [f"u{n % 9},{n},{item},{10 * n + k}" for n in range(45) for k, item in enumerate(("tea", f"cup {n % 3}", "pot"))]
)


def test_the_vocabulary_of_a_simulation_is_found_by_its_clients(here: Path) -> None:
    (here / "shops").mkdir()
    for shop in range(3):
        (here / "shops" / f"shop-{shop}.csv").write_text(f"{SHOP}\nu1,99,only-in-{shop},1\nu1,99,tea,2\n")
    named = ["--task", "sessions", "--method", "fedavg", "--data", "shops", "--clients", "3", "--run-id", "found"]
    result = CliRunner().invoke(app, ["simulate", *named, "--catalogue", "federated", "--rounds", "1"])
    assert result.exit_code == 0, result.output
    folder = RunDirectory(Path("runs"), "found")
    assert folder.config()["catalogue"] == "federated"
    assert json.loads(folder.catalogue())["items"] == ["cup 0", "cup 1", "cup 2", "pot", "tea"]
    assert "--catalogue federated" in (folder.path / "report.html").read_text()
    again = CliRunner().invoke(app, ["simulate", "--resume", "found", "--data", "shops", "--rounds", "2"])
    assert again.exit_code == 0, again.output
    other = CliRunner().invoke(app, ["simulate", "--resume", "exact", "--catalogue", "federated"])
    assert "continues with its own vocabulary" in str(other.output) + str(other.exception)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["simulate"], "does not apply to demo data"),
        (["simulate", "--task", "traffic"], "does not apply to the variables of task 'traffic'"),
    ],
)
def test_a_vocabulary_that_clients_cannot_find_is_refused(here: Path, words: list[str], reason: str) -> None:
    result = CliRunner().invoke(app, [*words, "--catalogue", "federated"])
    assert result.exit_code == 1
    assert reason in " ".join((str(result.output) + str(result.exception)).split())


ITEMS = tuple(f"item-{k}" for k in range(16))


def write_visits(path: Path, items: tuple[str, ...], first: int) -> None:
    """Write visitors with four sessions each, which walk through the items in a circle."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("visitor", "session", "time", "item"))
        for visitor in range(first, first + 6):
            for session in range(4):
                for step in range(4):
                    item = items[(visitor + session + step) % len(items)]
                    rows.writerow((f"v{visitor}", f"v{visitor}-{session}", session * 90_000 + step * 60, item))


@pytest.fixture
def begun(here: Path) -> Path:
    """Store a finished run; return the folder of runs."""
    write_visits(here / "january.csv", ITEMS[:10], 0)
    write_visits(here / "february.csv", ITEMS[4:], 20)
    done = simulate("--task sessions --method ridge --data january.csv --run-id january --no-alone")
    assert done.exit_code == 0, done.exception
    return here / "runs"


def test_a_run_takes_the_options_of_the_first_and_further_names(begun: Path) -> None:
    done = simulate(f"--start-from {begun / 'january'} --data february.csv --run-id february --no-alone")
    assert done.exit_code == 0, done.exception
    assert "started from run january" in done.stderr
    config = RunDirectory(begun, "february").config()
    assert [config[key] for key in ("task", "method", "start-from")] == ["sessions", "ridge", "january"]
    before, after = (json.loads(RunDirectory(begun, run).catalogue())["items"] for run in ("january", "february"))
    assert after[: len(before)] == before
    assert {*after} == {*ITEMS}
    assert "started from" in (begun / "february" / "report.html").read_text("utf-8")


def test_a_server_without_data_takes_the_names_of_the_first_run(begun: Path, tmp_path: Path) -> None:
    config = resolve(RunRequest(start_from="january", run_id="next", half_life=10.0), {})
    assert (config.half_life, config.catalogue) == (10.0, "demo")
    assert with_catalogue(config, None).catalogue == str(begun / "january" / "catalogue.json")
    more = tmp_path / "more.json"
    more.write_text('{"items": ["item-99"]}')
    assert with_catalogue(config, more).catalogue == str(more)


def test_misfits_are_refused_before_anything_starts(begun: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.toml").write_bytes((begun / "january" / "config.toml").read_bytes())
    for request, reason in (
        (RunRequest(start_from="absent"), "no run 'absent' in "),
        (RunRequest(start_from=str(elsewhere)), "is not in the server's folder of runs .*; copy it there"),
        (RunRequest(start_from="january", task="rules"), "run 'january' has task=sessions, this run task=rules"),
        (RunRequest(start_from="january", method="fedavg"), r"has sums \(method ridge\), .*; set --method ridge"),
        (RunRequest(half_life=3.0), "half-life is the decay of earlier sums; set start-from=RUN"),
        (RunRequest(start_from="january", resume="january"), "run 'january' continues with its own start-from="),
    ):
        with pytest.raises(ConfigError, match=reason):
            resolve(request, {})
