"""`--start-from` of the training commands: options and names of the first run, and what is refused."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.cli.options import RunRequest
from deploy.federation.request import resolve, with_catalogue
from server.record.folder import RunDirectory

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


def simulate(*words: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *words, "--no-alone"])


@pytest.fixture
def begun(here: Path) -> Path:
    """Store a finished run; return the folder of runs."""
    write_visits(here / "january.csv", ITEMS[:10], 0)
    write_visits(here / "february.csv", ITEMS[4:], 20)
    done = simulate("--task", "sessions", "--method", "ridge", "--data", "january.csv", "--run-id", "january")
    assert done.exit_code == 0, done.exception
    return here / "runs"


def test_a_run_takes_the_options_of_the_first_and_further_names(begun: Path) -> None:
    done = simulate("--start-from", str(begun / "january"), "--data", "february.csv", "--run-id", "february")
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
