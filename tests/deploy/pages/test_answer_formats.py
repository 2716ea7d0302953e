"""Forms of recommendations: batches as CSV and JSON, cells that no spreadsheet runs."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from common.config.parse import parse
from common.errors import ConfigError, DataError
from deploy.cli.app import app
from deploy.pages.answers import COLUMNS, batch_rows, format_of, to_csv
from deploy.simulation.grid import simulate
from deploy.tasks.spec import Answers


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one finished run of six raters."""
    folder = tmp_path_factory.mktemp("runs")
    flat = {"method": "fedavg", "task": "ratings", "rounds": 1, "run-id": "films", "federation.min-clients": 1}
    simulate(parse(flat), read_all("ratings", "demo:0-6"), folder)
    return folder


@pytest.fixture(autouse=True)
def _runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))


def recommend(*words: str) -> Result:
    return CliRunner().invoke(app, ["recommend", "--data", "demo:0-6", *words])


def test_a_batch_has_a_row_per_recommendation(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    done = recommend("--all", "--top", "3", "--out", str(path))
    assert done.exit_code == 0, done.exception
    assert "18 recommendations written to" in done.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [row["rank"] for row in rows] == ["1", "2", "3"] * 6
    assert len({row["user"] for row in rows}) == 6
    assert {row["kind"] for row in rows} == {"product"}
    assert all(float(row["score"]) <= 5 and row["what"] and row["why"] for row in rows)
    assert len({(row["user"], row["what"]) for row in rows}) == 18
    as_json = json.loads(recommend("--all", "--top", "3", "--format", "json").stdout)
    assert [row["what"] for row in as_json] == [row["what"] for row in rows]


def test_one_user_s_answers_as_table_csv_and_json() -> None:
    query = ("--user", "rater-00004", "--top", "2")
    rows = json.loads(recommend(*query, "--json").stdout)
    assert set(rows[0]) == {"product", "rating", "own_mean", "why"}
    assert rows[0]["rating"] == round(rows[0]["rating"], 2)
    lines = list(csv.reader(io.StringIO(recommend(*query, "--format", "csv").stdout)))
    assert [line[3] for line in lines[1:]] == [row["product"] for row in rows]
    assert lines[1][0] == "rater-00004"
    assert rows[0]["product"] in recommend(*query).stdout


def test_items_are_filtered_by_files(tmp_path: Path) -> None:
    names = [row["product"] for row in json.loads(recommend("--user", "rater-00004", "--top", "4", "--json").stdout)]
    (tmp_path / "out.txt").write_text(f"{names[0]}\nno such film\n", "utf-8")
    (tmp_path / "in.txt").write_text("\n".join(names[:3]), "utf-8")
    done = recommend(
        *("--user", "rater-00004", "--exclude", str(tmp_path / "out.txt"), "--only", str(tmp_path / "in.txt"), "--json")
    )
    assert [row["product"] for row in json.loads(done.stdout)] == names[1:3]
    assert "1 line of no item skipped" in done.stderr.replace("\n", " ")
    nothing = recommend(
        "--user", "rater-00004", "--exclude", str(tmp_path / "in.txt"), "--only", str(tmp_path / "in.txt")
    )
    assert "no item is left of" in nothing.stdout
    assert isinstance(recommend("--only", str(tmp_path / "missing")).exception, DataError)
    seen = json.loads(recommend("--user", "rater-00004", "--seen", "keep", "--top", "1000", "--json").stdout)
    assert len(seen) == len({row["product"] for row in seen})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "xml"), "xml is no form of the output; set --format to table, csv, json or yaml"),
        (("--format", "csv", "--json"), "--json contradicts --format csv; remove one of them"),
        (("--all", "--user", "rater-00004"), "--all contradicts --user rater-00004; remove one of them"),
        (("--seen", "maybe"), "--seen maybe is unknown; set --seen hide or --seen keep"),
        (("--out", "list.xlsx"), "xlsx is no form of list.xlsx; set --format to csv, json or yaml"),
        (("--out", "/proc/nowhere/list.csv"), "name a file that may be written"),
    ],
)
def test_wrong_use_is_refused(words: tuple[str, ...], message: str) -> None:
    refused = recommend(*words).exception
    assert isinstance(refused, ConfigError)
    assert message in str(refused)


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "\rx"])
def test_a_cell_that_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    answers = Answers("t", text, {"a": ("item",)}, [{"item": text, "score": -0.5, "why": text}], user=text)
    [_, row] = csv.reader(io.StringIO(to_csv(batch_rows([answers])), newline=""))
    shown = f"'{text}".replace("\t", " ").replace("\r", " ")
    assert row == [shown, "1", shown, shown, "-0.5", shown]


def test_the_form_follows_the_file() -> None:
    assert format_of("", None, is_json=False) == "table"
    assert format_of("", None, is_json=True) == "json"
    assert format_of("", Path("x.JSON"), is_json=False) == "json"
    assert format_of("", Path("x"), is_json=False) == "csv"
    with pytest.raises(ConfigError, match=r"table is no form of x\.csv"):
        format_of("table", Path("x.csv"), is_json=False)
