"""Command `recommend` for a session."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from common.config.parse import parse
from deploy.cli.app import app
from deploy.simulation.grid import simulate


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of six visitors."""
    folder = tmp_path_factory.mktemp("runs")
    flat = {"method": "fedavg", "task": "sessions", "rounds": 1, "run-id": "shop", "federation.min-clients": 1}
    simulate(parse(flat), read_all("sessions", "demo:0-6"), folder)
    return folder


def recommend(*words: str) -> Result:
    done = CliRunner().invoke(app, ["recommend", "--data", "demo:0-6", *words])
    assert done.exit_code == 0, done.exception
    return done


def test_a_session_without_a_user_uses_no_history(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    clicks = ("--session", "sea waders, telescopic line spool")
    assert recommend(*clicks).stdout.startswith(
        "anybody after sea waders, telescopic line spool, by run shop (round 1, the last)\n"
    )
    assert recommend(*clicks, "--user", "visitor-00003").stdout.startswith("visitor-00003 after sea waders,")
    user = ("--user", "visitor-00003")
    without, with_history = (json.loads(recommend(*clicks, *words, "--json").stdout) for words in ((), user))
    assert without != with_history


def test_titles_of_a_recbole_file_are_shown(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    names = read_all("sessions", "demo:0-6").vocabulary.items[:2]
    path = tmp_path / "shop.inter"
    path.write_text(
        "session_id:token\titem_id:token\ttimestamp:float\n" + "".join(f"1\t{n}\t{k}\n" for k, n in enumerate(names))
    )
    (tmp_path / "shop.item").write_text(
        f"item_id:token\titem_name:token_seq\n{names[0]}\tBig Boots\n{names[1]}\tWhite Rod\n"
    )
    (tmp_path / "other.item").write_text(f"item_id:token\titem_name:token_seq\n{names[0]}\tanother shop's\n")
    query = ("recommend", "--run", "shop", "--data", str(path))
    shown = CliRunner().invoke(app, query).stdout
    assert shown.splitlines()[0].startswith(
        f"group-00001 after {names[0]} Big Boots, {names[1]} White Rod, by run shop"
    )
    (tmp_path / "only.txt").write_text(names[1])
    [row] = json.loads(CliRunner().invoke(app, [*query, "--only", str(tmp_path / "only.txt"), "--json"]).stdout)
    assert (row["item"], row["title"]) == (names[1], "White Rod")
    assert "title" not in json.loads(recommend("--json").stdout)[0]
