"""`fedloom runs`: list, show, compare and remove."""

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from server.record.folder import RunDirectory
from tests.support.run_folders import make_forecasts, make_run


@pytest.fixture(autouse=True)
def stored(here: Path) -> Path:
    """Store comparable runs `a` and `b`, an unfinished one and one of another task."""
    root = here / "runs"
    make_run(root, "a", clients=8)
    make_run(root, "b", method="fedavg", clients=8, limit=0.9)
    make_run(root, "open", rounds=2, status="running")
    make_forecasts(root, "road")
    for age, name in enumerate(("road", "open", "b", "a")):
        set_age(root / name, age)
    for path in root.glob("[ab]/result.json"):  # equal data: the same number of records at each client
        document = json.loads(path.read_text())
        for client in document["clients"].values():
            client["examples"] = 5
        path.write_text(json.dumps(document))
    return root


def set_age(run: Path, days: float) -> None:
    for path in (run / "metrics.jsonl", run):
        os.utime(path, (time.time() - days * 86_400,) * 2)


def call(words: str) -> Result:
    return CliRunner().invoke(app, ["runs", *words.split()], env={"COLUMNS": "60"})


def output(words: str) -> str:
    done = call(words)
    assert done.exit_code == 0, done.exception
    return done.stdout


def refusal(words: str) -> str:
    done = call(words)
    assert isinstance(done.exception, ConfigError), done.output
    return str(done.exception)


@pytest.mark.parametrize("words", ["", "list"])
def test_runs_are_listed_with_whole_names_newest_first(words: str) -> None:
    lines = output(words).splitlines()
    assert [line.split()[0] for line in lines] == ["run", "road", "open", "b", "a"]
    assert "stopped" in lines[2]
    assert "30/30" in lines[4]
    assert "AUC 0.9" in lines[4]


def test_a_listed_run_that_delivers_an_earlier_round_has_its_test(stored: Path) -> None:
    document = json.loads((stored / "a" / "result.json").read_text())
    document["best"]["test"] = {**document["metrics"], "auc": 0.5}
    (stored / "a" / "result.json").write_text(json.dumps(document))
    assert "AUC 0.500" in output("list").splitlines()[4]


def test_a_listing_of_one_task_and_as_json() -> None:
    assert [run["run"] for run in json.loads(output("--task traffic --json"))] == ["road"]
    assert [run["run"] for run in json.loads(output("list --task rules --json"))] == ["open", "b", "a"]
    assert "no ratings runs in" in output("--task ratings")


def test_a_locked_run_is_running(stored: Path) -> None:
    with RunDirectory(stored, "open").lock():
        assert json.loads(output("show open --json"))["status"] == "running"
        assert refusal("rm open --yes").startswith("run 'open' is in use by process ")
    assert (stored / "open").exists()


def test_damaged_folders_and_links_do_not_break_the_list(stored: Path, here: Path) -> None:
    (stored / "a" / "result.json").write_text("{")
    (stored / "b" / "config.toml").write_text("= no\x1b[31m")
    (stored / "c").symlink_to(make_run(here / "elsewhere", "c", rounds=1))
    done = call("list")
    assert done.exit_code == 0, done.exception
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["run", "road", "open"]
    assert "a cannot be read: not a run result" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_run_is_shown_by_its_summary_and_its_verdict(stored: Path) -> None:
    path = stored / "a" / "result.json"
    document = json.loads(path.read_text())
    verdict = {"metric": "hr20", "better": "higher", "final": 0.5, "text": "Of 8 homes, 6 do better than alone."}
    path.write_text(json.dumps({**document, "verdict": verdict}))
    text = output("show a")
    assert "fedrule on rules · model default · completed · 30/30 rounds · 8 clients" in text
    assert text.count("Of 8 homes, 6 do better than alone.") == 1
    assert f"folder   {stored / 'a'}" in text
    assert "fedrule on rules · stopped · 2/2 rounds" in output("show open")


def test_comparable_runs_are_compared_client_by_client() -> None:
    lines = [" ".join(line.split()) for line in output("compare a b").splitlines()]
    assert any(line.startswith("AUC ↑ 0.98") and " * 0." in line for line in lines)
    assert "b minus a, 8 clients in both, ± two standard errors:" in lines
    found = json.loads(output("compare a b --json"))
    assert found["mismatches"] == []
    assert found["differences"]["b"]["auc"]["clients"] == 8
    assert found["differences"]["b"]["auc"]["mean"] < 0


def test_no_best_is_marked_among_runs_on_different_data(stored: Path) -> None:
    text = output("compare a road")
    assert "*" not in text
    assert "the runs differ in task and data" in text
    (stored / "b" / "catalogue.json").write_text('{"entities": ["Window"]}')
    text = output("compare a b")
    assert "*" not in text
    assert "minus" not in text
    assert "the runs differ in data" in text
    assert json.loads(output("compare a b --json"))["differences"] == {}


def test_a_fingerprint_decides_about_data_and_split(stored: Path) -> None:
    for name, mark in (("a", "x"), ("b", "y")):
        path = stored / name / "metrics.jsonl"
        path.write_text(path.read_text().replace('"fingerprint":""', f'"fingerprint":"{mark}"', 1))
    assert json.loads(output("compare a b --json"))["mismatches"] == ["data"]


def test_a_comparison_needs_two_runs() -> None:
    assert refusal("compare a a") == "a comparison needs two runs; name another one"
    assert "no run 'nobody' in" in refusal("compare a nobody")


def test_removed_runs_move_to_the_trash(stored: Path) -> None:
    assert output("rm a b --yes").count("moved ") == 2
    make_run(stored, "a", rounds=1)
    output("rm a --yes")
    assert len([path for path in (stored / ".trash").iterdir() if path.name.startswith("a")]) == 2
    assert [line.split()[0] for line in output("list").splitlines()] == ["run", "road", "open"]


def test_old_runs_are_deleted_for_good(stored: Path) -> None:
    assert "nothing was removed" in output("rm --older-than 30d --yes --now")
    assert output("rm --older-than 2d --yes --now").count("deleted") == 2
    assert sorted(path.name for path in stored.iterdir()) == ["open", "road"]


def test_removal_asks_and_needs_someone_to_answer(stored: Path) -> None:
    assert "set --yes" in refusal("rm a")
    assert "give names, or --older-than AGE" in refusal("rm --yes")
    assert (stored / "a").exists()


@pytest.mark.parametrize("name", ["../elsewhere", ".trash", "nobody"])
def test_nothing_outside_the_folder_of_runs_is_removed(name: str, stored: Path) -> None:
    assert refusal(f"rm {name} --yes")
    assert not (stored / "nobody").exists()


def test_links_are_neither_removed_nor_followed(stored: Path, here: Path) -> None:
    target = make_run(here / "elsewhere", "c", rounds=1)
    (stored / "c").symlink_to(target)
    assert "is a link to a folder elsewhere" in refusal("rm c --yes --now")
    (stored / ".trash").symlink_to(here / "elsewhere")
    assert "is a link to a folder elsewhere" in refusal("rm a --yes")
    (stored / "a" / "out").symlink_to(here / "elsewhere")
    output("rm a --yes --now")
    assert (target / "result.json").exists()


@pytest.mark.parametrize("age", ["30", "d", "-3d", "3y", "٣d", "9999999d"])
def test_other_ages_are_refused(age: str) -> None:
    assert f"--older-than {age} is not an age" in refusal(f"rm --yes --older-than={age}")
